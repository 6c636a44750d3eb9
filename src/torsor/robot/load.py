"""Public functions that create robots: one for each reader in ``formats``."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from numpy.typing import ArrayLike

from torsor import formats
from torsor.base.errors import ModelError
from torsor.base.registry import registered
from torsor.formats import DHLink, MDHLink
from torsor.formats.dispatch import KINDS, is_description
from torsor.mechanism import Frame, Joint, Link
from torsor.mechanism import build as build_mechanism
from torsor.robot.robot import Robot

EARTH = (0.0, 0.0, -9.81)


def robot_names() -> tuple[str, ...]:
    """Return the names of the library robots, which ``load`` accepts."""
    return tuple(sorted(registered("robots", "library") or ()))


def named_robot(name: str, base: str = "fixed") -> object:
    """Return the library robot with a given name, a ``Robot`` or a ``ParallelRobot``; ``base`` must be "fixed"."""
    robot: object = registered("robots", "library")[name]()
    if base != "fixed":
        floats = isinstance(robot, Robot) and robot.joints[0].type == "free"
        found = "but the base of this library robot floats already" if floats else "but this is a library robot"
        fix = "omit `base`" if floats else "save it as .toml, and load that file with `base='floating'`"
        raise ModelError(f"is {base!r}, {found}", argument="base", value=base, where=name, allowed="'fixed'", fix=fix)
    return robot


def load(
    path: str | Path | Any,
    base: str = "fixed",
    strict: bool | None = None,
    snap: float = 0.0,
    search: Sequence[str | Path] = (),
    xacro: Mapping[str, object] | None = None,
) -> Robot:
    """Load a robot from a file or a model of another program, or a library robot by name.

    | source | needs |
    |---|---|
    | URDF (.urdf), SDF (.sdf, .world), TOML (.toml), OpenSim skeletons without muscles (.osim) | |
    | MJCF (.xml, .mjcf) | ``torsor[mjcf]`` |
    | .yaml, .yml: closed loops, motors and joint types for the URDF file next to it | ``torsor[yaml]`` |
    | .xacro, with the arguments ``xacro``; it can run code, so load only trusted files | ``torsor[xacro]`` |
    | USD stages (.usda, .usd, .usdc, .usdz) | ``torsor[usd]`` |
    | ``robot_descriptions:NAME``, a robot of that package | ``torsor[robots]`` |
    | a ``mujoco.MjModel`` or ``mujoco.MjSpec``, or a ``pinocchio.Model`` (without its ``GeometryModel``) | |
    | a name without a suffix, such as "panda": a robot of ``torsor.library``, unless such a file exists | |

    ``world.sdf#arm`` selects the model ``arm`` of a file with several models, ``world.sdf#cell/arm`` a nested model,
    and ``scene.usda#/World/arm`` one of several articulations. ``search`` lists folders of packages and models in which
    ``package://`` and ``model://`` are resolved first, before the folders listed in environment variables. Closed loops
    are read from TOML, from the equality constraints of MJCF, from Drake's loop joints in URDF, and from links with two
    parents in SDF.

    ``base="floating"`` adds a free 6-dof joint under the root link: q = (x, y, z, qx, qy, qz, qw, joints) and v =
    (omega, v of the base in its own axes, joint rates). If the robot in the file already floats, ModelError is raised.
    Library robots are loaded with ``base="fixed"`` only.

    ``strict`` makes a physically impossible inertia an error (True) or a warning (False). The default is an error for
    TOML and a warning for other formats, because published files often contain such inertias. ``strict`` also applies
    to unusable limits, visuals, stray tags and transmissions in URDF and SDF, and to unsupported MJCF features, such as
    tendons. The error lists all faults in the file.

    ``snap`` (rad; 1e-5 is a good choice) is for files with rounded angles such as 1.5708. Rotations and axes within
    this tolerance of multiples of pi/12 become exact, which removes operations on tiny components. Lengths, masses and
    limits are unchanged.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     torsor.library.scara().save(folder + "/scara.toml")
        ...     torsor.load(folder + "/scara.toml", base="floating").nv
        10
        >>> torsor.load("scara").nv
        4
    """
    if _is_name(path):
        return _of_library(str(path), base)
    return Robot.of(formats.read(path, base, strict, snap, search, xacro))


def _is_name(path: str | Path) -> bool:
    """Return whether a path looks like a name and is not a file; a folder with this name may be an earlier export."""
    if not isinstance(path, str) or not path.isidentifier() or is_description(path) or Path(path).is_file():
        return False
    return not Path(path).exists() or path in robot_names()


def _of_library(name: str, base: str) -> Robot:
    known = robot_names()
    if name not in known:
        near = get_close_matches(name, known, 1)
        fix = f"write {near[0]!r}" if near else "check the path, or see torsor.library for names"
        raise ModelError("no such file or robot", where=name, allowed=f"{KINDS}, or a library name", fix=fix)
    robot = named_robot(name, base)
    if not isinstance(robot, Robot):
        call = f"torsor.library.{name}()"
        fix = f"use {call} for the parallel robot, {call}.as_robot() for a tree with loops"
        raise ModelError("this is a parallel robot", where=name, allowed="robots that are trees or have loops", fix=fix)
    return robot


def from_dh(
    links: Sequence[DHLink], gravity: ArrayLike = EARTH, name: str = "robot", strict: bool = True, base: str = "fixed"
) -> Robot:
    """Return a serial robot from a standard Denavit-Hartenberg table: T = Rz(theta) Tz(d) Tx(a) Rx(alpha).

    ``gravity`` (3,) is the acceleration in base axes, m/s^2. Link frame i is at the far end of link i (Barman 2020). A
    final row with ``closes=-1`` is a joint back to the base, which closes a loop. ``base="floating"`` adds a free joint
    under the base, as in ``load``, and ``strict=False`` accepts physically impossible inertias. The table has no row
    for the mass of the base; add it with ``robot.with_payload("base", ...)``.

    Example:
        >>> rod = torsor.DHLink(a=1.0, mass=1.0, com=(-0.5, 0, 0))
        >>> torsor.from_dh([rod, rod], gravity=(0, -9.81, 0)).gravity_force([0.0, 0.0]).round(9).tolist()
        [19.62, 4.905]
        >>> torsor.from_dh([rod, rod, rod, torsor.DHLink(a=1.2, closes=-1)]).closed.mobility().dof
        1
    """
    return Robot.of(formats.read_dh(links, gravity, name, strict, base))


def from_mdh(
    links: Sequence[MDHLink], gravity: ArrayLike = EARTH, name: str = "robot", strict: bool = True, base: str = "fixed"
) -> Robot:
    """Return a tree robot from a modified Denavit-Hartenberg table with Khalil and Kleinfinger's six parameters.

    The pose of a link frame in the frame ``parent`` (-1 for the base) is T = Rz(gamma) Tz(b) Rx(alpha) Tx(d) Rz(theta)
    Tz(r) (Khalil 2010, section 2.1). A row with ``closes`` is a cut joint of a closed loop (Khalil 2010, section 2.2);
    see ``MDHLink``. For ``gravity``, ``strict`` and ``base="floating"`` (Khalil 2010, section 7), see ``from_dh``.

    Example:
        >>> rows = [torsor.MDHLink(-1, mass=1.0), torsor.MDHLink(0, d=1.0, mass=1.0, com=(0.5, 0, 0))]
        >>> torsor.from_mdh(rows, gravity=(0, -9.81, 0)).gravity_force([0.0, 0.0]).round(9).tolist()
        [14.715, 4.905]
        >>> crank, rocker = torsor.MDHLink(-1, active=True), torsor.MDHLink(-1, d=1.0, mass=1.0)
        >>> pin = [torsor.MDHLink(1, d=0.9, closes=4), torsor.MDHLink(2, d=0.8, joint="fixed")]
        >>> four_bar = torsor.from_mdh([crank, torsor.MDHLink(0, d=0.4, mass=1.0), rocker, *pin])
        >>> four_bar.closed.assemble([0.5], guess=[0.5, 1.0, 1.5]).round(3).tolist()
        [0.5, 0.242, 1.553]
    """
    return Robot.of(formats.read_mdh(links, gravity, name, strict, base))


def from_screws(
    home: Sequence[ArrayLike],
    screws: Sequence[ArrayLike],
    inertias: Sequence[ArrayLike],
    gravity: ArrayLike = EARTH,
    frame: Literal["space", "body"] = "space",
    parents: Sequence[int] | None = None,
    name: str = "robot",
    strict: bool = True,
    base: str = "fixed",
) -> Robot:
    """Return a robot from home poses M_0i (4 x 4), screw axes S_i (6,) and spatial inertias G_i (6 x 6).

    G_i is in link frame i, angular part first: diag(I, m 1) for a frame at the centre of mass, or any result of
    ``torsor.spatial.spatial_inertia``. Axes (omega, v) are in the space frame at home, or in the link frame with
    ``frame="body"``. |omega| = 1, or omega = 0 and |v| = 1 for a prismatic joint; omega . v is the pitch of a helical
    joint. ``parents`` defines a tree; by default each link follows the previous one. For ``gravity``, ``strict`` and
    ``base="floating"`` see ``from_dh``.

    Example:
        >>> home = np.eye(4)
        >>> home[0, 3] = 0.5
        >>> inertia = np.diag([0.1, 0.1, 0.1, 2.0, 2.0, 2.0])
        >>> torsor.from_screws([home], [[0, 0, 1, 0, 0, 0]], [inertia]).mass_matrix([0.0]).round(9).tolist()
        [[0.6]]
    """
    return Robot.of(formats.read_screws(home, screws, inertias, gravity, frame, parents, name, strict, base))


def build(
    name: str,
    links: Sequence[Link],
    joints: Sequence[Joint],
    frames: Iterable[Frame] = (),
    gravity: ArrayLike = EARTH,
    base: str = "fixed",
) -> Robot:
    """Return a robot from links and joints created in Python, in any order.

    Links attached by fixed joints are merged into their parents. ``gravity`` and ``base`` are as in ``from_dh``.

    Example:
        >>> rod = torsor.Link("rod", mass=1.0, com=(0.5, 0, 0))
        >>> pin = torsor.Joint("pin", "revolute", "ground", "rod")
        >>> torsor.build("swing", [torsor.Link("ground"), rod], [pin]).nv
        1
    """
    return Robot.of(build_mechanism(name, links, joints, frames, gravity, base=base))
