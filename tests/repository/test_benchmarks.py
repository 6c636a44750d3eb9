"""Files compared with Pinocchio and MuJoCo: equal robots agree, others differ, and each omitted file has a reason."""

import importlib.util
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import bench.figures
import bench.measure
import torsor
from bench.coordinates import MujocoCoordinates
from bench.twins import MujocoTwin, PinocchioTwin, Twin

pin = pytest.importorskip("pinocchio")

mujoco = pytest.importorskip("mujoco")

INERTIA = '<inertia ixx="0.3" iyy="0.2" izz="0.4" ixy="0.01" ixz="0" iyz="0"/>'  # Pinocchio requires all six
BODY = f'<inertial><origin xyz="0.1 0.2 0"/><mass value="2"/>{INERTIA}</inertial>'
JOINTS = (("planar", ""), ("revolute", ""), ("continuous", ""), ("prismatic", '<mimic joint="j1" multiplier="-2"/>'))
URDF = "".join(
    f'<link name="l{k + 1}">{BODY}</link><joint name="j{k}" type="{kind}"><parent link="l{k}"/><child link="l{k + 1}"/>'
    f'<origin xyz="0.1 0 0.3" rpy="0.2 0 0.1"/><axis xyz="0 0 1"/>{more}<dynamics damping="1" friction="2"/>'
    '<limit lower="-9" upper="9" effort="1" velocity="1"/></joint>'
    for k, (kind, more) in enumerate(JOINTS)
)
URDF = f'<robot name="r"><link name="l0">{BODY}</link>{URDF}</robot>'
GEOM = '<geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0.2"/>'
MJCF = f"""<mujoco><option gravity="0 1 -9" density="1.2"/><worldbody>
<body pos="1 0 0"><freejoint/>{GEOM}<body><joint name="ball" type="ball" damping="1"/>{GEOM}
<body pos="0 1 0"><joint name="hinge" frictionloss="0.3" stiffness="2" springref="9" armature="0.1"/>{GEOM}
<body><inertial pos="0 0 5e-7" mass="1000" diaginertia="1 1 1"/><joint name="slide" type="slide" axis="1 1 0"/></body>
</body></body></body></worldbody>
<equality><joint joint1="hinge" joint2="slide"/></equality>
<actuator><position joint="slide" kp="100"/></actuator></mujoco>"""


def urdf_twin(folder: Path, base: str) -> PinocchioTwin:
    path = folder / "robot.urdf"
    path.write_text(URDF)
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    robot = torsor.load(path, base=base).to(device="casadi")
    return PinocchioTwin(robot, pin.buildModelFromUrdf(str(path), *root))


def mjcf_twin(folder: Path) -> MujocoTwin:
    path = folder / "robot.xml"
    path.write_text(MJCF)
    with pytest.warns(torsor.ModelWarning, match="fluid forces"):
        robot = torsor.load(path).to(device="casadi")
    return MujocoTwin(robot, mujoco.MjModel.from_xml_path(str(path)))


@pytest.fixture(params=["fixed", "floating", "mjcf"])
def twin(request: pytest.FixtureRequest, tmp_path: Path) -> Twin:
    return mjcf_twin(tmp_path) if request.param == "mjcf" else urdf_twin(tmp_path, request.param)


def test_all_kinds_of_joints_springs_and_friction_agree(twin: Twin) -> None:
    found = twin.differences()
    assert found.forward_dynamics is not None and found.largest < 1e-12


def test_a_mass_that_is_wrong_by_a_millionth_is_found(twin: Twin) -> None:
    *others, last = twin.robot.links
    twin.robot = replace(twin.robot, links=(*others, replace(last, mass=last.mass * (1 + 1e-6))))
    found = twin.differences()
    assert min(found.mass_matrix, found.inverse_dynamics, found.forward_dynamics or 0.0) > 1e-9


def test_accelerations_of_a_peer_are_the_rates_of_its_velocities(twin: Twin) -> None:
    ((q, v, a, _),) = twin.states(1)
    coordinates, h = twin.coordinates, 1e-6
    before, after = (twin.robot.integrate(q, s * h * v) for s in (-1, 1))
    ends = [coordinates.velocity_map(x) @ (v + s * h * a) for x, s in ((before, -1), (after, 1))]
    np.testing.assert_allclose((ends[1] - ends[0]) / (2 * h), coordinates.accelerations(q, v, a), atol=1e-7)
    assert isinstance(coordinates, MujocoCoordinates) or np.linalg.norm(coordinates.convective(q, v)) > 0.01


def test_a_robot_without_inertia_has_no_forward_dynamics_to_compare(tmp_path: Path) -> None:
    twin = urdf_twin(tmp_path, "fixed")
    robot = torsor.Robot.of(
        replace(twin.robot, links=[replace(each, mass=0, inertia=np.zeros((3, 3))) for each in twin.robot.links])
    )
    model = pin.Model(twin.model)
    for k in range(model.njoints):
        model.inertias[k] = pin.Inertia.Zero()
    found = PinocchioTwin(robot.to(device="casadi"), model).differences(1)
    assert found == (0.0, 0.0, None) and found.largest == 0.0


# The command


@pytest.fixture(scope="module")
def command():
    path = Path(__file__).parents[2] / "benchmarks" / "robot_files.py"
    spec = importlib.util.spec_from_file_location("robot_files", path)
    sys.modules["robot_files"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["robot_files"]


def test_every_file_is_compared_or_has_a_reason(command, tmp_path: Path) -> None:
    (tmp_path / "robot.urdf").write_text(URDF)
    (tmp_path / "still.urdf").write_text(f'<robot name="r"><link name="l0">{BODY}</link></robot>')
    (tmp_path / "broken.urdf").write_text('<robot name="r"></robot>')
    (tmp_path / "robot.xml").write_text(MJCF)
    (tmp_path / "other.xml").write_text("<?xml version='1.0'?><launch/>")
    (tmp_path / "mesh.xml").write_text(
        '<mujoco><asset><mesh file="no.stl"/></asset><worldbody><body><freejoint/><inertial pos="0 0 0" mass="1" '
        'diaginertia="1 1 1"/><geom type="mesh" mesh="no"/></body></worldbody></mujoco>'
    )
    found = {job: command.compared(job, 1) for job in command.jobs([tmp_path])}
    assert [(job.path.name, job.base, each.what) for job, each in found.items()] == [
        ("broken.urdf", "fixed", "refused by both"),
        ("broken.urdf", "floating", "refused by both"),
        ("mesh.xml", "fixed", "refused by the peer"),
        ("robot.urdf", "fixed", "compared"),
        ("robot.urdf", "floating", "compared"),
        ("robot.xml", "fixed", "compared"),
        ("still.urdf", "fixed", "nothing moves"),
        ("still.urdf", "floating", "compared"),
    ]
    assert all(each.reason or each.what == "compared" for each in found.values())
    lines = "\n".join(command.table(found))
    assert "| URDF | fixed | 3 | 2 | 1 | 1 | 0 | 0 | 1 | 0 | 0 |" in lines
    assert "| MJCF | fixed | 2 | 1 | 1 | 0 | 0 | 1 | 0 | 0 | 1 |" in lines
    assert "refused by both: broken.urdf (fixed): broken.urdf: there is no link; allowed: at least a base" in lines
    assert "no.stl" in lines and "nothing moves: still.urdf (fixed)" in lines


def test_without_peers_torsor_is_measured_and_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(package: str) -> None:
        raise PackageNotFoundError(package)

    for function in ("files", "version"):
        monkeypatch.setattr(bench.measure, function, absent)
    parts = ("_robot_rows", "derivatives", "simulation", "prediction", "_threads", "_compile_time", "_first_calls")
    for part in parts:
        monkeypatch.setattr(bench.figures, part, lambda *_: [])
    monkeypatch.setattr(bench.figures, "_robot_rows", lambda title, *_: [bench.measure.Row(f"rates, {title}", 1e-6)])
    monkeypatch.setattr(bench.figures, "limits", list)
    output = StringIO()
    rows = bench.figures.run_benchmarks(console=Console(file=output, width=120))
    assert [row.figure for row in rows] == ["rates, UR5", "rates, Panda", "rates, chain of 100 links"]
    assert "All are in torsor[dev]." in output.getvalue()
