"""Robot tables for the terminal (rich)."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from rich.markup import escape
from rich.table import Table

from torsor.base.errors import listing
from torsor.base.summary import titled_table
from torsor.mechanism import Wheel
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot

if TYPE_CHECKING:
    from torsor.simulation import Trajectory

_DYNAMICS = ("inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives")
_FORCES = ("bias_force", "gravity_force", "coriolis_matrix", "joint_wrenches")
COUNTED = (*_DYNAMICS, "mass_matrix", *_FORCES, "poses")
COUNTED_ACTIVE = tuple(f"constrained_{name}" for name in (*_DYNAMICS, "accelerations", "joint_wrenches"))
COUNTED_CLOSED = ("closed_forward_dynamics", "closure_error", "closure_jacobian", "poses")
_JACOBIANS = ("jacobian", "inverse_jacobian", "leg_accelerations")
COUNTED_PARALLEL = (*_DYNAMICS[:2], "mass_matrix", "platform_force", *_JACOBIANS)


def _number(value: float) -> str:
    return "0" if abs(value) < 1e-12 else f"{value:.4g}"


def _numbers(values: ArrayLike) -> str:
    return " ".join(_number(value) for value in np.atleast_1d(np.asarray(values, dtype=float)))


def link_table(robot: Robot) -> Table:
    """Return the masses, centres of mass and principal moments of the moving links."""
    table = titled_table("Links", "link", "parent", "mass (kg)", "centre of mass (m)", "principal moments (kg m²)")
    for link, joint in zip(robot.links, robot.joints, strict=True):
        numbers: list[ArrayLike] = [link.mass, link.com, np.linalg.eigvalsh(link.inertia)]
        table.add_row(escape(link.name), escape(joint.parent), *map(_numbers, numbers))
    table.add_section()
    table.add_row("all moving links", "", _number(robot.mass), "", "")
    return table


def joint_table(robot: Robot) -> Table:
    """Return the types, axes, limits, friction and rotor inertias of the joints, without empty columns."""
    optional = {"speed": ("velocity_limit", np.inf), "effort": ("effort_limit", np.inf), "Coulomb": ("coulomb", 0.0)}
    optional |= {"viscous": ("viscous", 0.0), "rotor": ("rotor_inertia", 0.0)}
    shown = dict[str, str]()
    for title, (field, nothing) in optional.items():
        if any(np.any(np.asarray(getattr(joint, field)) != nothing) for joint in robot.joints):
            shown[title] = field
    table = titled_table("Joints", "joint", "type", "axis", "range", *shown)
    for joint in robot.joints:
        lower, upper = np.atleast_1d(joint.lower), np.atleast_1d(joint.upper)
        bounded = np.isfinite(lower).any() or np.isfinite(upper).any()
        limits = f"{_numbers(lower)} .. {_numbers(upper)}" if bounded else "unlimited"
        name = f"{joint.name} (follows {joint.coordinate})" if joint.follows else joint.name
        axis = "" if joint.type in ("free", "spherical") else _numbers(joint.axis)
        cells = (_numbers(sorted(set(np.ravel(getattr(joint, field))))) for field in shown.values())
        table.add_row(escape(name), joint.type, axis, limits, *cells)
    return table


def drive_table(robot: Robot) -> Table | None:
    """Return the springs and motors of the joints, or None if there are none."""
    table = titled_table("Drives", "joint", "what", "stiffness", "damping", "rotor (kg m²)", "gear", "carrier", "axis")
    for joint in robot.joints:
        if (spring := joint.spring) is not None:
            at = f"spring, rest position {_number(spring.rest)}"
            table.add_row(escape(joint.name), at, _stiffness(spring.stiffness), _number(spring.damping))
        if (m := joint.motor) is not None:
            elastic = ("motor", "", "")
            if m.stiffness:
                elastic = "elastic motor", _stiffness(m.stiffness), _number(m.damping)
            rotor = _number(m.inertia), _number(m.ratio), escape(m.carrier), _numbers(m.axis)
            table.add_row(escape(joint.name), *elastic, *rotor)
    return table if table.row_count else None


def _stiffness(value: float | str) -> str:
    return escape(value) if isinstance(value, str) else _number(value)


def state_table(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Table:
    """Return the forces and reactions in one state, joint by joint."""
    forces = robot.inverse_dynamics(q, v, a), robot.gravity_force(q)
    wrenches = robot.joint_wrenches(q, v, a)
    columns = ("joint", "drive", "gravity", "moment on link", "force on link")
    table = titled_table("Inverse dynamics and joint reactions (N m and N)", *columns)
    for joint, at, wrench in zip(robot.joints, robot.coordinates, wrenches, strict=True):
        cells = *(each[at.v] for each in forces), wrench[:3], wrench[3:]
        table.add_row(escape(joint.name), *map(_numbers, cells))
    return table


def counted(robot: Robot | ParallelRobot) -> tuple[str, ...]:
    """Return the algorithms that ``count_table`` lists. For a mechanism with loops, they are those of closed loops."""
    if isinstance(robot, ParallelRobot):
        return COUNTED_PARALLEL
    if not robot.loops:
        return COUNTED
    return (*(COUNTED_ACTIVE if robot.active else ()), *COUNTED_CLOSED)


def count_table(robot: Robot | ParallelRobot) -> Table:
    """Return the scalar operation counts, for one state, of the traced algorithms ``counted``."""
    table = titled_table("Operations for one state", "algorithm", "multiplications", "additions", "sin/cos", "other")
    for name in counted(robot):
        table.add_row(name, *(str(number) for number in robot.operation_count(name)))
    return table


def motion_table(trajectory: "Trajectory") -> Table:
    """Return a summary of one rollout: duration, energy change, maximum speed and loop-closure error."""
    table = titled_table(f"Motion of {escape(trajectory.robot.name)}", "what", "value")
    energy, speeds = trajectory.energy, np.abs(trajectory.v).max(axis=0, initial=0.0)
    rows = {
        "status": trajectory.status,
        "duration (s)": _number(trajectory.times[-1]),
        "samples": str(len(trajectory)),
        "energy at the start (J)": _number(energy[0]),
        "energy change (J)": f"{energy[-1] - energy[0]:.2e}",
    }
    if trajectory.robot.loops:
        rows["largest error of closure (m or 1)"] = f"{np.abs(trajectory.closure_error).max(initial=0.0):.1e}"
    if any(isinstance(loop, Wheel) for loop in trajectory.robot.loops):
        rows["largest slip (m/s)"] = f"{np.abs(trajectory.closure_rate).max(initial=0.0):.1e}"
    if speeds.size:
        fastest = trajectory.robot.coordinate_names[int(np.argmax(speeds))]
        rows["largest speed (rad/s or m/s)"] = f"{_number(speeds.max())} ({escape(fastest)})"
    if "contact" in trajectory.settings and trajectory.external is not None:
        forces = np.linalg.norm(trajectory.external[..., 3:], axis=-1).max(axis=0, initial=0.0)
        link = trajectory.robot.link_names[int(np.argmax(forces))]
        rows["largest external force, with contact (N)"] = f"{_number(forces.max())} ({escape(link)})"
    saturated = np.flatnonzero(trajectory.saturated.any(axis=0))
    if saturated.size:
        names = listing((trajectory.robot.coordinate_names[k] for k in saturated), most=4)
        rows["drives that saturate"] = escape(names)
    for each in trajectory.overloads[:1]:
        rows["overload (N m or N)"] = f"{_number(each.force)} of {_number(each.limit)} ({escape(each.coordinate)})"
    for what, value in rows.items():
        table.add_row(what, value)
    return table
