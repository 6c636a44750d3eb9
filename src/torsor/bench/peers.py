"""The peers of the benchmark: the same robots in Pinocchio and MuJoCo, the same function as CasADi's own C."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.robot.robot import Robot
from torsor.spatial import to_quaternion

__all__ = ["Pinocchio", "casadi_in_c", "mujoco_call", "mujoco_steps", "with_rotors"]

Array = NDArray[np.float64]


class Pinocchio:
    """Pinocchio's model of a file, with random states that fit it; its joints may be in another order."""

    def __init__(self, path: Path, base: str, states: int):
        import pinocchio

        self._pin: Any = pinocchio
        root = (pinocchio.JointModelFreeFlyer(),) if base == "floating" else ()
        self._model = pinocchio.buildModelFromUrdf(str(path), *root)
        self._data, self._pool = self._model.createData(), pinocchio.ModelPool(self._model, 1)
        self._model.lowerPositionLimit, self._model.upperPositionLimit = (
            np.full(self._model.nq, -1.0),
            np.full(self._model.nq, 1.0),
        )
        rng = np.random.default_rng(0)
        self._q = np.asfortranarray(np.array([pinocchio.randomConfiguration(self._model) for _ in range(states)]).T)
        self._v, self._a = (np.asfortranarray(rng.normal(size=(self._model.nv, states))) for _ in range(2))
        self._one = [np.ascontiguousarray(array[:, 0]) for array in (self._q, self._v, self._a)]

    def batch(self) -> None:
        """Compute inverse dynamics of all states, in C++ on one thread."""
        self._pin.rneaInParallel(1, self._pool, self._q, self._v, self._a)

    def direct(self) -> None:
        """Compute direct dynamics of all states, in C++ on one thread."""
        self._pin.abaInParallel(1, self._pool, self._q, self._v, self._a)

    def single(self) -> None:
        """Compute inverse dynamics of one state."""
        self._pin.rnea(self._model, self._data, *self._one)

    def derivatives(self) -> None:
        """Compute the derivatives of inverse dynamics of one state, by q, v and a."""
        self._pin.computeRNEADerivatives(self._model, self._data, *self._one)

    def direct_derivatives(self) -> None:
        """Compute the derivatives of direct dynamics of one state."""
        self._pin.computeABADerivatives(self._model, self._data, *self._one)

    def mass_matrix(self) -> None:
        """Compute the mass matrix of one state."""
        self._pin.crba(self._model, self._data, self._one[0])


def mujoco_call(robot: Robot) -> Callable[[], None]:
    """Return a call of MuJoCo's inverse dynamics of one state: kinematics, and ``mj_rne`` with accelerations."""
    import mujoco

    model: Any = mujoco.MjModel.from_xml_string(_mjcf(robot))
    data, result = mujoco.MjData(model), np.zeros(model.nv)
    rng = np.random.default_rng(0)
    v, a = rng.normal(size=(2, model.nv))

    def call() -> None:
        data.qvel[:], data.qacc[:] = v, a
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 1, result)

    return call


def with_rotors(robot: Robot) -> Robot:
    """Return an elastic robot whose links have the inertia of the rotors that ``mujoco_steps`` puts on them."""
    for motor in (joint.motor for joint in robot.elastic):
        assert motor is not None
        robot = robot.with_payload(motor.carrier, ROTOR_MASS, inertia=_rotor(motor.inertia, motor.axis))
    return robot


def mujoco_steps(robot: Robot, step: float, count: int, q: Array, v: Array) -> Callable[[], Array]:
    """Return a call of ``mj_step`` from a state of an elastic robot: as many steps of RK4, no contacts; it returns q.

    ``robot`` is without the rotors' own inertia: in MuJoCo they are bodies, and springs are tendons.
    """
    import mujoco

    options = f'<option integrator="RK4" timestep="{step:.17g}" gravity="{_text(robot.gravity)}"/>'
    model: Any = mujoco.MjModel.from_xml_string(_mjcf(robot, options))
    data: Any = mujoco.MjData(model)
    places = [model.joint(name).qposadr[0] for name in robot.coordinate_names]
    # Behind the joints' own: the rotors, before their gears.
    gears = np.array([1.0] * len(robot.joints) + [joint.motor.ratio for joint in robot.elastic if joint.motor])

    def call() -> Array:
        mujoco.mj_resetData(model, data)
        data.qpos[places], data.qvel[places] = gears * q, gears * v
        mujoco.mj_step(model, data, count)
        return np.asarray(data.qpos[places] / gears)

    return call


ROTOR_MASS = 1e-6


def _rotor(inertia: float, axis: Array) -> Array:
    """Return the inertia (3 x 3) of a flat disc with the given moment about its axis."""
    return inertia / 2 * (np.eye(3) + np.outer(axis, axis))


def _text(values: Any) -> str:
    return " ".join(f"{value:.17g}" for value in np.ravel(values))


def _mjcf(robot: Robot, options: str = "") -> str:
    """Return a robot of revolute, prismatic and free joints, with elastic motors as bodies and tendons, as MJCF."""
    below: dict[int, list[int]] = {}
    for i, parent in enumerate(robot.parents):
        below.setdefault(parent, []).append(i)
    kinds = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "free": "free"}

    def rotors(carrier: str) -> str:
        return "".join(
            f'<body><inertial pos="0 0 0" mass="{ROTOR_MASS}" fullinertia="{_six(_rotor(m.inertia, m.axis))}"/>'
            f'<joint name="{name}/motor" type="hinge" axis="{_text(m.axis)}"/></body>'
            for name, m in ((joint.name, joint.motor) for joint in robot.elastic)
            if m is not None and m.carrier == carrier
        )

    def body(i: int) -> str:
        link, joint = robot.links[i], robot.joints[i]
        w_first = np.roll(to_quaternion(joint.placement[:3, :3]), 1)
        inertia = _six(link.inertia + 1e-9 * np.eye(3))
        axis = "" if joint.type == "free" else f' axis="{_text(joint.axis)}" pos="{_text(joint.point)}"'
        return (
            f'<body pos="{_text(joint.placement[:3, 3])}" quat="{_text(w_first)}">'
            f'<inertial pos="{_text(link.com)}" mass="{max(link.mass, 1e-9):.17g}" fullinertia="{inertia}"/>'
            f'<joint name="{joint.name}" type="{kinds[joint.type]}"{axis}/>{rotors(link.name)}'
            f"{''.join(map(body, below.get(i, [])))}</body>"
        )

    bodies = rotors(robot.base.name) + "".join(map(body, below.get(-1, [])))
    springs = "".join(
        f'<fixed stiffness="{m.stiffness}" damping="{m.damping}">'
        f'<joint joint="{name}/motor" coef="{1 / m.ratio:.17g}"/><joint joint="{name}" coef="-1"/></fixed>'
        for name, m in ((joint.name, joint.motor) for joint in robot.elastic)
        if m is not None
    )
    compiler = '<compiler angle="radian" balanceinertia="true"/>'
    return f"<mujoco>{compiler}{options}<worldbody>{bodies}</worldbody><tendon>{springs}</tendon></mujoco>"


def _six(inertia: Array) -> str:
    return _text(inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])


def casadi_in_c(function: ca.Function, inputs: tuple[Array, ...]) -> Callable[[], Any] | None:
    """Return a call of CasADi's own C code over a batch, compiled by gcc for this machine, or None without gcc."""
    compiler = shutil.which("gcc")
    if compiler is None:
        return None
    # What is loaded stays when its file is gone, but Windows does not let the file go.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        source, library = Path(folder) / "generated.c", Path(folder) / "generated.so"
        function.generate(source.name, {"with_header": False})
        shutil.move(source.name, source)
        options = ["-O3", "-march=native", "-ffp-contract=fast", "-fPIC", "-shared"]
        subprocess.run([compiler, *options, str(source), "-o", str(library), "-lm"], check=True)
        mapped = ca.external(function.name(), str(library)).map(len(inputs[0]))
    columns = [ca.DM(array.T) for array in inputs]
    return lambda: mapped.call(columns)
