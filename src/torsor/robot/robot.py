"""Robot: every public method with its docstring. The work is in the functions that the methods call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import casadi as ca
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import flag, indices_of, one_of
from torsor.base.errors import ModelError
from torsor.compiler import OperationCount, count_operations
from torsor.dynamics import Algorithm, parameter_names, parameters
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.formats import write
from torsor.mechanism import Mechanism, Shape, edit, edit_loops
from torsor.mechanism.free import free_numbers
from torsor.robot.closed_loops.assembly import assemble, closed_positions
from torsor.robot.closed_loops.closure import LoopClosure
from torsor.robot.closed_loops.constrained import constrained, driven, driven_derivatives, written
from torsor.robot.closed_loops.contacts import with_contacts
from torsor.robot.closed_loops.mobility import Mobility
from torsor.robot.closed_loops.multipliers import active_accelerations, by_multipliers
from torsor.robot.closed_loops.regressor import closed_base_parameters, constrained_regressor
from torsor.robot.derivatives import Loads, Results, Sparse, derivatives, jvp, rates, sparse, vjp
from torsor.robot.export import export_c, export_cpp, export_js
from torsor.robot.inertial import BaseParameters, base_parameters, with_parameters
from torsor.robot.kernels import Out, RobotKernels
from torsor.robot.parametric import Parametric
from torsor.robot.target import Target
from torsor.robot.wrenches import wrench_at

if TYPE_CHECKING:
    from torsor.geometry.allowed import AllowedCollisions
    from torsor.geometry.distances import Distances
    from torsor.geometry.pairs import Pairs

Two = tuple[Array, Array]
Three = tuple[Array, Array, Array]
Place = str | int | None  # a link (by name or index) or a named frame


@dataclass(frozen=True, eq=False, repr=False)
class Robot(Mechanism):
    """A mechanism (links, joints, drives, loops) with its compiled dynamics.

    Made by ``torsor.load``, ``from_dh``, ``from_mdh``, ``from_screws``, ``torsor.build`` and ``torsor.library``. SI
    units, radians. Arrays have any leading axes, which broadcast: ``q`` is (..., nq), ``v``, ``a`` and forces are
    (..., nv). Spatial vectors have the angular part first. ``external`` is (..., L, 6): the wrench (moment, force) that
    the environment exerts on each moving link, at the link's origin, in the link's axes. ``out`` is an array of the
    result's shape that is written and returned (of several results, a tuple of arrays or None): it saves the time that
    the system takes for new memory, which is long where results are large.

    A robot is immutable. ``kernels`` holds its compiled functions, ``closure`` the data of its loops. Derivatives of
    closed mechanisms are by the active coordinates (columns): dq along the motion of the mechanism, dv by velocities at
    constant positions, and so on. Columns of redundant active coordinates are zero.

    Example:
        >>> robot = torsor.library.two_link()
        >>> robot.inverse_dynamics([0.3, -1.2], [1.1, -0.7], [2.0, 3.5]).round(6).tolist()
        [1.129562, 0.643878]
    """

    target: Target = field(default=Target(), compare=False)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}{', ' * bool(str(self.target))}{self.target}>"

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self:
        """Return the robot of a mechanism."""
        return cls(**{f.name: getattr(mechanism, f.name) for f in fields(Mechanism)})

    @cached_property
    def kernels(self) -> RobotKernels:
        """The compiled functions."""

        def choice(algorithm: Algorithm) -> ClosureChoice:
            return self.closure.choice(algorithm)

        return RobotKernels(self, self.target, choice)

    @cached_property
    def closure(self) -> LoopClosure:
        """Scales, a reference configuration and independent equations of the loops."""
        return LoopClosure(self.kernels)

    # Inverse kinematics

    def inverse_kinematics(
        self,
        targets: Any,
        q0: ArrayLike | None = None,
        limits: bool = True,
        tolerance: float = 1e-9,
        restarts: int = 100,
        posture: ArrayLike | None = None,
        manipulability: bool = False,
        clearance: float | None = None,
        pairs: Pairs = None,
    ) -> Any:
        """Return postures that meet targets: ``result.q`` (..., nq), ``result.error`` (...), ``result.solved`` (...).

        ``targets`` is {place: pose (..., 4, 4) or position (..., 3)}, or a list of targets of ``inverse_kinematics``
        (Pose, Position, Orientation, Direction, LookAt, CenterOfMass), with weights and hard ones; in base axes, m and
        rad. Leading axes are a batch. The search starts at ``q0`` (..., nq), or at a posture that it chooses, and
        begins up to ``restarts`` times again where it is stuck. Joint limits hold with ``limits``; loops are closed.
        With a ``posture`` (..., nq), the search goes on to the nearest solution to it, with ``manipulability`` to one
        with more of it. With a ``clearance`` (m), collision shapes stay at least that far apart: those of ``pairs`` as
        in ``distances``, by default all that are checked. What cannot be reached gets the nearest posture that was
        found, with ``solved`` False; ``result.cause(index)`` says why.

        Example:
            >>> arm = torsor.library.ur5()
            >>> there = arm.pose([0.3, -1.0, 1.2, 0.4, 0.9, -0.2], "ee_link")
            >>> found = arm.inverse_kinematics({"ee_link": there})
            >>> bool(found.solved), bool(np.allclose(arm.pose(found.q, "ee_link"), there, rtol=0, atol=1e-8))
            (True, True)
        """
        options = tolerance, restarts, posture, manipulability, clearance, pairs
        return import_module("torsor.robot.inverse_kinematics").inverse_kinematics(self, targets, q0, limits, *options)

    def analytic_inverse_kinematics(self, pose: ArrayLike, place: str | int, limits: bool = True) -> Array:
        """Return all postures (K, nq) of a six-axis arm with one pose (4, 4) of a place in base axes, in closed form.

        For six revolute joints of which the first or the last three axes meet (a spherical wrist), or of which axes 2,
        3 and 4 are parallel and 5 and 6 meet, from either end; a ModelError otherwise. Postures that differ by whole
        turns are one; with ``limits``, those within the limits. Where a wrist is singular, one posture stands for all.

        Example:
            >>> arm = torsor.library.ur5()
            >>> there = arm.pose([0.3, -1.0, 1.2, 0.4, 0.9, -0.2], "ee_link")
            >>> arm.analytic_inverse_kinematics(there, "ee_link").shape
            (8, 6)
        """
        found: Array = import_module("torsor.robot.inverse_kinematics").analytic_inverse_kinematics(
            self, pose, place, limits
        )
        return found

    # Collision shapes

    def distances(
        self,
        q: ArrayLike,
        pairs: Pairs = None,
        gradient: bool = False,
        within: float | None = None,
    ) -> Distances:
        """Return signed distances (..., P) between collision shapes at q (..., nq), with normals and nearest points.

        ``pairs`` are pairs of names of links, frames or shapes, or an allowed collision matrix; by default all pairs
        but those of ``allowed_collision_matrix``. ``gradient=True`` adds the derivatives by the coordinates
        (..., P, nv), exact where the nearest points are unique. Pairs of spheres and capsules, of planes with all
        but meshes, and of spheres with boxes and cylinders are compiled; all others are computed by coal (the extra
        ``collision``). With ``within`` (m), those whose bounding spheres are farther apart get the distance of these
        spheres, a lower bound. See docs/shapes.md.

        Example:
            >>> ball = torsor.Shape("sphere", (0.1,))
            >>> arm = torsor.library.planar_chain(3).with_shapes("base", [ball]).with_shapes("link3", [ball])
            >>> found = arm.distances([0.0, 0.3, 0.0], [("base", "link3")], gradient=True)
            >>> found.distance.round(6).tolist(), (found.gradient.round(6) + 0.0).tolist()
            ([1.777542], [[0.0, -0.149438, 0.0]])
        """
        from torsor.geometry.pairs import distance_model

        return distance_model(self, pairs, within)(q, flag(gradient, f"{self.name}: distances", "gradient"))

    def allowed_collision_matrix(self, samples: int = 1000, seed: int = 0) -> AllowedCollisions:
        """Return which links may touch, and why: what ``distances`` leaves out by default.

        These are the pairs of the file (<exclude> of MJCF, ``with_allowed_collisions``), links that a joint connects,
        and links that always or never overlap in ``samples`` random postures within the limits (0: not sampled).
        Edit it with ``allow`` and ``check``, save it as .srdf, and use it as ``pairs`` of ``distances``.

        Example:
            >>> ball = torsor.Shape("sphere", (0.1,))
            >>> arm = torsor.library.planar_chain(3).with_shapes("link1", [ball]).with_shapes("link2", [ball])
            >>> print(arm.allowed_collision_matrix(samples=0))
            planar_chain: 1 pairs of 2 parts may touch
            link1 - link2: adjacent
        """
        from torsor.geometry.allowed import default_matrix

        return default_matrix(self, samples, seed)

    def with_shapes(self, place: str, shapes: Sequence[Shape]) -> Self:
        """Return the robot with other collision shapes on a link or frame, in its axes; an empty list removes them.

        Example:
            >>> arm = torsor.library.two_link().with_shapes("link2", [torsor.Shape("capsule", (0.05, 0.4))])
            >>> [shape.shape for shape in arm.links[1].shapes]
            ['capsule']
        """
        from torsor.geometry.pairs import with_shapes

        return with_shapes(self, place, shapes)

    def with_allowed_collisions(self, allowed: Any) -> Self:
        """Return the robot with these links that may touch, in place of those of its file.

        ``allowed`` is an allowed collision matrix, a list of (link, link, reason), or the path of an .srdf file, whose
        <disable_collisions> are read.

        Example:
            >>> arm = torsor.library.two_link().with_allowed_collisions([("link1", "link2", "user")])
            >>> arm.allowed_collisions
            (('link1', 'link2', 'user'),)
        """
        from torsor.geometry.pairs import with_allowed_collisions

        return with_allowed_collisions(self, allowed)

    # Target, files and functions

    def to(self, dtype: Any = None, device: str | None = None, threads: int | str | None = None) -> Self:
        """Return the same robot computed on another target; arguments that are not given stay as they are.

        ``dtype`` is float64 or float32, ``threads`` the most threads that share a batch, or "auto" (the cores of this
        process; small batches stay on one), ``device`` is cpu (compiled code), cuda (an NVIDIA card: arrays of CuPy,
        see docs/gpu.md; needs the extra ``gpu``) or casadi (its virtual machine: nothing is compiled, states take far
        longer). Accelerations in float32 lose digits with the condition number of the mass matrix: a warning tells if
        fewer than two are left at the neutral position or at one of 24 others within the limits; not all are tried.

        Example:
            >>> torsor.library.two_link().to(dtype="float32")
            <Robot 'two_link': 2 moving links, nq=2, nv=2, float32>
        """
        return replace(self, target=self.target.changed(self.name, dtype, device, threads, bool(self.loops)))

    def save(self, path: str | Path) -> None:
        """Write the robot as TOML, which ``torsor.load`` reads back equal, or as URDF, SDF, MJCF (.xml) or USD (.usda).

        Other formats cannot express all robots: a ``ModelWarning`` names omitted forces and limits, and a structure
        that the format cannot describe is a ``ModelError``. Meshes outside of the folder of URDF, SDF and MJCF files
        are copied beside them. See ``formats.write_urdf``, ``write_sdf``, ``write_mjcf`` and ``write_usd``.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     torsor.library.two_link().save(folder + "/arm.toml")
            ...     torsor.load(folder + "/arm.toml") == torsor.library.two_link()
            ...     torsor.library.seven_axis_arm().save(folder + "/arm.urdf")
            ...     torsor.load(folder + "/arm.urdf").nv
            True
            7
        """
        write(self, path)

    def export_c(
        self,
        path: str | Path,
        names: Sequence[str] | None = None,
        dtype: str = "float64",
        place: str | int | None = None,
        name: str = "torsor_kernels",
        prefix: str = "",
        loops: str | None = None,
        overwrite: bool = True,
    ) -> list[Path]:
        """Write algorithms as self-contained C99 into a folder and return the paths: header, source, CMakeLists.txt.

        ``names`` are names of methods, by default the inverse dynamics (with loops, the constrained one); a method of
        one link or frame is written as "jacobian:hand". ``loops="open"`` as in ``function``. ``name`` is the name of
        the files and of the library, ``prefix`` goes before the names of the C functions: several robots in one program
        need both. The code allocates nothing, has no state and calls libm only: it is meant for controllers. With
        ``overwrite=False`` an existing file is an error; a file that Torsor did not write is never replaced.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     [path.name for path in torsor.library.two_link().export_c(folder, ["inverse_dynamics"], name="arm")]
            ['arm.h', 'arm.c', 'CMakeLists.txt']
        """
        return export_c(self, path, names, dtype, place, name, prefix, loops, overwrite)

    def export_cpp(
        self,
        path: str | Path,
        names: Sequence[str] | None = None,
        dtype: str = "float64",
        place: str | int | None = None,
        name: str = "torsor_kernels",
        prefix: str = "",
        loops: str | None = None,
        overwrite: bool = True,
    ) -> list[Path]:
        """Write algorithms as C99 with a header of C++17 into a folder: NAME.hpp and the files of ``export_c``.

        Arguments as of ``export_c``. The namespace ``name`` has a function for each algorithm, on views of fixed length
        (arrays, ``std::array``, ``std::span``, vectors of Eigen); ``name::robot`` has names, units, limits, gravity.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     [path.name for path in torsor.library.two_link().export_cpp(folder, name="arm")]
            ['arm.hpp', 'arm.h', 'arm.c', 'CMakeLists.txt']
        """
        return export_cpp(self, path, names, dtype, place, name, prefix, loops, overwrite)

    def export_ros2(self, path: str | Path, name: str | None = None, overwrite: bool = True) -> list[Path]:
        """Write a package of ROS 2 into a folder and return the paths of its files: C++ that needs the exported C only.

        It has a chainable controller of ros2_control (gravity or inverse dynamics, with PD gains) and a plugin of
        inverse_dynamics_solver. ``name`` is that of the package, by default ``ROBOT_dynamics``. See docs/ros2.md.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     torsor.library.six_axis_arm().export_ros2(folder)[-1].name
            'check_numbers.cpp'
        """
        written: list[Path] = import_module("torsor.export.ros2").export_ros2(self, path, name, overwrite)
        return written

    def export_js(
        self,
        path: str | Path,
        names: Sequence[str] | None = None,
        dtype: str = "float64",
        place: str | int | None = None,
        name: str = "torsor_kernels",
        prefix: str = "",
        loops: str | None = None,
        overwrite: bool = True,
    ) -> list[Path]:
        """Write algorithms as an ES module into a folder and return the paths: NAME.js, NAME.d.ts, package.json.

        Arguments as of ``export_c``. The module needs nothing else: ``inverseDynamics(q, v, a, out)`` for one state and
        ``inverseDynamicsRows`` for many take and return typed arrays; ``robot`` has names, units and limits.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     [path.name for path in torsor.library.two_link().export_js(folder, name="arm")]
            ['arm.js', 'arm.d.ts', 'package.json']
        """
        return export_js(self, path, names, dtype, place, name, prefix, loops, overwrite)

    def export_fmi(
        self,
        path: str | Path,
        names: Sequence[str] = (),
        version: int = 3,
        inverse: bool = False,
        parameters: Sequence[str] | Mapping[str, Any] = (),
        external: Sequence[str] = (),
        q0: ArrayLike | None = None,
        v0: ArrayLike | None = None,
        step: float = 1e-3,
        binary: bool = True,
        overwrite: bool = True,
    ) -> list[Path]:
        """Write the dynamics as a functional mock-up unit, for model exchange and co-simulation, and return its path.

        Inputs are the forces ``tau`` (N m, N), the states q and v are outputs, as the accelerations a are; with
        ``inverse``, q, v and a are inputs and tau the output. ``names`` are more outputs: "joint_wrenches:LINK",
        "pose:PLACE", "velocity:PLACE", "acceleration:PLACE", "center_of_mass", "kinetic_energy", "potential_energy".
        ``parameters`` are tunable numbers of the robot, as in ``parametric``; ``external`` are links with a wrench as
        input. ``q0`` (nq,) and ``v0`` (nv,) are the start values, by default neutral and at rest. Co-simulation takes
        equal steps of ``simulate``'s rk4, none longer than ``step`` (s), which is a parameter too.

        ``version`` of FMI is 3 or 2. The file has the C sources and, unless ``binary`` is False, a library for this
        machine, which needs a C compiler. Directional derivatives are exact. An existing file is an error with
        ``overwrite=False``. With loops, q0 and v0 are closed. See docs/fmi.md.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = folder + "/arm.fmu"
            ...     torsor.library.two_link().export_fmi(path, ["pose:link2"], binary=False)[0].name
            'arm.fmu'
        """
        options = version, inverse, parameters, external, q0, v0, step, binary, overwrite
        paths: list[Path] = import_module("torsor.export.fmi").export_fmi(self, path, names, *options)
        return paths

    def function(
        self,
        name: str,
        place: str | int | None = None,
        external: bool | str = False,
        forced: Sequence[str] | None = None,
        order: int = 1,
        loops: str | None = None,
        **options: Any,
    ) -> ca.Function:
        """Return the CasADi function behind a method.

        ``place`` is the link or frame of methods that take one; "jacobian:hand" is short for it. ``external`` adds the
        external wrenches as an input; for derivatives it is "link", "world" or "point", where they are fixed.
        ``forced`` names the coordinates driven by force in hybrid dynamics, ``order`` is the number of rates in
        ``force_rate``. ``loops="open"`` is for the dynamics of the tree that is left when the loops are cut.
        ``options`` are ``axes``, ``point=True`` for a point as the last input, and ``rows``, where the method has them.

        Example:
            >>> torsor.library.two_link().function("inverse_dynamics")
            Function(inverse_dynamics:(q[2],v[2],a[2])->(inverse_dynamics[2]) SXFunction)
        """
        return self.kernels.traced(self.kernels.request(name, place, external, forced, loops, order=order, **options))

    def operation_count(
        self,
        name: str,
        place: str | int | None = None,
        external: bool | str = False,
        forced: Sequence[str] | None = None,
        order: int = 1,
        loops: str | None = None,
        **options: Any,
    ) -> OperationCount:
        """Return the scalar operations that a method takes for one state; arguments as in ``function``.

        Example:
            >>> torsor.library.two_link().operation_count("mass_matrix").trigonometric
            1
        """
        return count_operations(self.function(name, place, external, forced, order, loops, **options))

    def equations(
        self,
        name: str,
        form: str = "latex",
        symbols: bool | Sequence[str] | Mapping[str, Any] = False,
        simplify: bool = True,
        place: str | int | None = None,
        forced: Sequence[str] | None = None,
        loops: str | None = None,
        digits: int = 6,
        axes: str = "local",
    ) -> Any:
        r"""Return the equations of a method, as LaTeX or as SymPy expressions (``Equations``); needs ``symbolic``.

        They are those of the traced function, expanded exactly and written in the shortest of several forms: c_12 is
        cos(q_1 + q_2), v is written as the rate of q. ``symbols`` writes the robot's numbers as symbols: True for all
        (m mass, r centre of mass, I inertia, l length, g), or paths as in ``parametric``, with names in a mapping.
        ``simplify=False`` gives the operations as they are computed, with names for what is used more than once: of
        robots of any size. ``digits`` are those of numbers in LaTeX; ``place``, ``forced``, ``loops`` and ``axes`` as
        in ``function``.

        Example:
            >>> arm = torsor.library.planar_chain(1)
            >>> print(arm.equations("gravity_force", symbols=True))
            \begin{aligned}
            G_{1} &= c_{1} g m_{1} r_{1} \\
            c_{1} &= \cos{\left(q_{1} \right)}
            \end{aligned}
        """
        from torsor.robot.equations.equations import equations

        request = self.kernels.request(name, place, forced=forced, loops=loops, axes=axes)
        return equations(self, request, form, symbols, simplify, digits)

    # Forces

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        external: ArrayLike | None = None,
        loops: str | None = None,
        out: Out = None,
    ) -> Array:
        """Return the generalised forces (..., nv) of a motion, in N m and N.

        ``external`` (..., L, 6) is the wrench (moment, force) of the environment on each moving link, at its origin in
        its axes. tau = M(q) a + C(q, v) v + g(q) + friction(v) - sum of J^T external, by Newton-Euler recursion
        (Barman 2020; Guarino Lo Bianco 2009; Khalil 2010). Rotor inertias and friction are included. These are the
        forces of a tree: a robot with loops raises an error that names ``constrained_inverse_dynamics``, unless
        ``loops="open"`` says that its loops are to be cut open. So do all methods of the tree's dynamics.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> float(robot.inverse_dynamics([0.0], [0.0], [0.0])[0].round(9))  # 3 kg, 1 m away
            29.43
        """
        return self.kernels.call("inverse_dynamics", q, v, a, external=external, loops=loops, out=out)

    def forward_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        external: ArrayLike | None = None,
        loops: str | None = None,
        out: Out = None,
    ) -> Array:
        """Return the accelerations (..., nv) that generalised forces cause: the inverse of ``inverse_dynamics``.

        a = M(q)^-1 (tau - C(q, v) v - g(q) - friction(v) + sum of J^T external), in O(n) by articulated bodies
        (Khalil 2010, section 3.3.2). The result is infinite where a joint moves no inertia. With loops it is
        ``closed_forward_dynamics``; ``loops="open"`` as in ``inverse_dynamics``.

        Example:
            >>> robot = torsor.library.two_link()
            >>> tau = robot.inverse_dynamics([0.3, -1.2], [1.1, -0.7], [2.0, 3.5])
            >>> robot.forward_dynamics([0.3, -1.2], [1.1, -0.7], tau).round(9).tolist()
            [2.0, 3.5]
        """
        return self.kernels.call("forward_dynamics", q, v, tau, external=external, loops=loops, out=out)

    def hybrid_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        tau: ArrayLike,
        forced: Sequence[str],
        external: ArrayLike | None = None,
        out: Out = None,
    ) -> Two:
        """Return (a, tau) of all coordinates, each (..., nv), where some are driven by force, others by motion.

        ``forced`` names the coordinates (or joints, for all of theirs) whose force is given in ``tau`` and whose
        acceleration is computed; of all others the acceleration is given in ``a`` and the force is computed. Entries of
        ``a`` and ``tau`` that are computed are ignored as inputs. With none forced it is inverse dynamics, with all
        forced forward dynamics, with the base of a floating robot forced the moving-base inverse model of Khalil 2010
        (eqs. 89-100).

        Example:
            >>> robot = torsor.library.two_link()
            >>> a, tau = robot.hybrid_dynamics([0, 0.5], [1, 0], [0, 2.0], [0.3, 0], forced=["joint1"])
            >>> robot.inverse_dynamics([0, 0.5], [1, 0], a).round(9).tolist() == tau.round(9).tolist()
            True
        """
        request = self.kernels.request("hybrid_dynamics", external=external is not None, forced=forced)
        loads = () if external is None else (external,)
        found: Two = self.kernels.compiled(request)(q, v, a, tau, *loads, out=out)
        return found

    def joint_wrenches(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        external: ArrayLike | None = None,
        loops: str | None = None,
        out: Out = None,
    ) -> Array:
        """Return the joint reactions (..., L, 6): the wrench that each parent exerts on its link through the joint.

        (moment, force) at the link's origin in the link's axes, in N m and N (Barman 2020, Khalil 2010). The component
        along a joint's axis is the sum for drive, friction and rotor; the rest is carried by the bearings. With loops
        it is ``constrained_joint_wrenches``; ``loops="open"`` as in ``inverse_dynamics``.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> robot.joint_wrenches([0.0], [0.0], [0.0])[0].round(9).tolist()
            [0.0, 0.0, 29.43, 0.0, 29.43, 0.0]
        """
        return self.kernels.call("joint_wrenches", q, v, a, external=external, loops=loops, out=out)

    def mass_matrix(self, q: ArrayLike, loops: str | None = None, out: Out = None) -> Array:
        """Return M(q) (..., nv, nv): symmetric, rotor inertias on its diagonal. Composite bodies, Walker and Orin 1982.

        With loops, that of the active coordinates is the last result of ``constrained_inverse_dynamics_derivatives``;
        ``loops="open"`` as in ``inverse_dynamics``.

        Example:
            >>> torsor.library.two_link().mass_matrix([0.0, 0.0]).round(9).tolist()
            [[0.4, 0.16], [0.16, 0.12]]
        """
        return self.kernels.call("mass_matrix", q, loops=loops, out=out)

    def bias_force(self, q: ArrayLike, v: ArrayLike, loops: str | None = None, out: Out = None) -> Array:
        """Return the bias forces (..., nv), those at zero acceleration: C(q, v) v + g(q) + friction(v).

        Example:
            >>> torsor.library.two_link().bias_force([0.0, np.pi / 2], [1.0, 0.0]).round(9).tolist()
            [0.0, 0.04]
        """
        return self.kernels.call("bias_force", q, v, loops=loops, out=out)

    def gravity_force(self, q: ArrayLike, loops: str | None = None, out: Out = None) -> Array:
        """Return the gravity forces (..., nv), which balance gravity at rest: g(q).

        Example:
            >>> torsor.library.slide_link().gravity_force([0.1, 0.2]).tolist()
            [0.0, 0.0]
        """
        return self.kernels.call("gravity_force", q, loops=loops, out=out)

    def friction_force(self, v: ArrayLike, out: Out = None) -> Array:
        """Return the friction forces (..., nv): Fs sign(v) + Fv v, or Fs tanh(v / smooth) + Fv v.

        Example:
            >>> torsor.library.two_link().with_friction("joint2", coulomb=1.0).friction_force([1.0, -2.0]).tolist()
            [0.0, -1.0]
        """
        return self.kernels.call("friction_force", v, out=out)

    def spring_force(self, q: ArrayLike, out: Out = None) -> Array:
        """Return the spring forces (..., nv) of each coordinate: K(x) x of springs on joints and behind motors.

        Example:
            >>> robot = torsor.library.two_link().with_motor("joint2", 1e-3, stiffness=100.0)
            >>> robot.spring_force([0.0, 0.0, 0.2]).tolist()  # the motor is ahead and pulls the joint after it
            [0.0, -20.0, 20.0]
        """
        return self.kernels.call("spring_force", q, out=out)

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike, loops: str | None = None, out: Out = None) -> Array:
        """Return C(q, v) (..., nv, nv): C v are the velocity-dependent forces, and dM/dt - 2 C is skew-symmetric.

        Example:
            >>> torsor.library.two_link().coriolis_matrix([0.0, np.pi / 2], [1.0, 0.0]).round(9).tolist()
            [[0.0, -0.04], [0.04, 0.0]]
        """
        return self.kernels.call("coriolis_matrix", q, v, loops=loops, out=out)

    # Motion of links and frames

    def poses(self, q: ArrayLike, out: Out = None) -> Array:
        """Return the poses (..., L, 4, 4) of the moving links in base axes.

        Example:
            >>> torsor.library.two_link().poses([0.0, 0.0])[1, :3, 3].round(9).tolist()
            [0.8, 0.0, 0.0]
        """
        return self.kernels.call("poses", q, out=out)

    def velocities(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the twists (..., L, 6) of the moving links: (omega, v of the origin) in the link's axes.

        Example:
            >>> torsor.library.two_link().velocities([0.0, 0.0], [1.0, 0.0])[1].round(9).tolist()
            [0.0, 0.0, 1.0, 0.0, 0.8, 0.0]
        """
        return self.kernels.call("velocities", q, v, out=out)

    def accelerations(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return (..., L, 6) of the moving links: (rate of omega, acceleration of the origin) in the link's axes.

        The second part is the classical acceleration of the origin, without gravity.

        Example:
            >>> torsor.library.two_link().accelerations([0.0, 0.0], [1.0, 0.0], [0.0, 0.0])[1].round(9).tolist()
            [0.0, 0.0, 0.0, -0.8, 0.0, 0.0]
        """
        return self.kernels.call("accelerations", q, v, a, out=out)

    def jerks(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, j: ArrayLike, out: Out = None) -> Array:
        """Return (..., L, 6): (second rate of omega, jerk of the origin) of each link in its own axes.

        Example:
            >>> robot, still = torsor.library.two_link(), [0.0, 0.0]
            >>> (robot.jerks(still, [1.0, 0.0], still, still)[0].round(9) + 0.0).tolist()
            [0.0, 0.0, 0.0, 0.0, -0.4, 0.0]
        """
        return self.kernels.call("jerks", q, v, a, j, out=out)

    def pose(self, q: ArrayLike, place: str | int, out: Out = None) -> Array:
        """Return the pose (..., 4, 4), in base axes, of a link (name or index) or named frame.

        Example:
            >>> torsor.library.two_link().pose([0.0, 0.0], "link2")[:3, 3].round(9).tolist()
            [0.8, 0.0, 0.0]
        """
        return self.kernels.at_place("pose", (q,), place, out=out)

    def forward_kinematics(self, q: ArrayLike, place: str | int, out: Out = None) -> Array:
        """Return ``pose(q, place)``: the pose (..., 4, 4) of a link or named frame in base axes.

        Example:
            >>> torsor.library.two_link().forward_kinematics([0.0, 0.0], "link2")[:3, 3].round(9).tolist()
            [0.8, 0.0, 0.0]
        """
        return self.pose(q, place, out)

    def velocity(
        self, q: ArrayLike, v: ArrayLike, place: Place, axes: str = "local", point: Maybe = None, out: Out = None
    ) -> Array:
        """Return the twist (..., 6) of a link or named frame: (omega, v of its origin) in its own axes.

        With ``point`` (..., 3), in m in the axes of the place, v is that of this point, which is fixed to the place.
        ``axes="aligned"`` gives the same vectors in base axes; ``axes="world"`` the twist at the base's origin in base
        axes, (omega, v - omega x p) for any point p of the place. See docs/kinematics.md.

        Example:
            >>> robot = torsor.library.two_link()
            >>> robot.velocity([0.0, 0.0], [1.0, 0.0], "link1").round(9).tolist()
            [0.0, 0.0, 1.0, 0.0, 0.4, 0.0]
            >>> robot.velocity([np.pi / 2, 0.0], [1.0, 0.0], "link1", axes="aligned")[3:].round(9).tolist()
            [-0.4, 0.0, 0.0]
        """
        return self.kernels.at_place("velocity", (q, v), place, axes, point, out)

    def acceleration(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        place: Place,
        axes: str = "local",
        point: Maybe = None,
        out: Out = None,
    ) -> Array:
        """Return (..., 6) of a link or named frame: (rate of omega, acceleration of its origin) in its own axes.

        It equals J a + J' v + (0, omega x v), with the place's Jacobian J and twist (omega, v), and J a + J' v in
        other axes. ``point`` and ``axes="aligned"`` as in ``velocity``; ``axes="world"`` is the rate of that twist,
        whose linear part is not the acceleration of a point.

        Example:
            >>> torsor.library.two_link().acceleration([0.0, 0.0], [1.0, 0.0], [0.0, 0.0], "link1").round(9).tolist()
            [0.0, 0.0, 0.0, -0.4, 0.0, 0.0]
        """
        return self.kernels.at_place("acceleration", (q, v, a), place, axes, point, out)

    def jerk(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        j: ArrayLike,
        place: Place,
        axes: str = "local",
        point: Maybe = None,
        out: Out = None,
    ) -> Array:
        """Return (..., 6) of a link or named frame: (second rate of omega, jerk of its origin) in its own axes.

        ``j`` (..., nv) is the rate of a. They are the rates of the vectors of ``acceleration``, seen from the base
        (Guarino Lo Bianco 2009, eqs. 5 and 8), for every joint. ``axes`` and ``point`` as there.

        Example:
            >>> robot, still = torsor.library.two_link(), [0.0, 0.0]
            >>> (robot.jerk(still, [1.0, 0.0], still, still, "link1").round(9) + 0.0).tolist()
            [0.0, 0.0, 0.0, 0.0, -0.4, 0.0]
        """
        return self.kernels.at_place("jerk", (q, v, a, j), place, axes, point, out)

    def jacobian(
        self,
        q: ArrayLike,
        place: Place = None,
        axes: str = "local",
        point: Maybe = None,
        out: Out = None,
        link: Place = None,
    ) -> Array:
        """Return J (..., 6, nv) of a link or named frame: (omega, v of its origin) = J v, in its own axes.

        ``axes`` is "local", "aligned" or "world", ``point`` (..., 3) a point fixed to the place, both as in
        ``velocity``: J v is that twist. ``link`` is an older name of ``place``.

        Example:
            >>> robot = torsor.library.two_link()
            >>> robot.jacobian([0.0, 0.0], "link2")[4].round(9).tolist()
            [0.8, 0.4]
            >>> robot.jacobian([np.pi / 2, 0.0], "link2", axes="aligned", point=[0.1, 0, 0])[3].round(9).tolist()
            [-0.9, -0.5]
        """
        place = place if link is None else link
        return self.kernels.at_place("jacobian", (q,), place, axes, point, out)

    def jacobian_rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        place: Place = None,
        axes: str = "local",
        point: Maybe = None,
        out: Out = None,
        link: Place = None,
    ) -> Array:
        """Return the rate (..., 6, nv) of the components of ``jacobian``, whose ``axes`` and ``point`` it has.

        ``link`` is an older name of ``place``.

        Example:
            >>> torsor.library.two_link().jacobian_rate([0.0, 0.0], [0.0, 1.0], "link2")[3].round(9).tolist()
            [0.4, 0.0]
        """
        place = place if link is None else link
        return self.kernels.at_place("jacobian_rate", (q, v), place, axes, point, out)

    def velocity_derivatives(
        self, q: ArrayLike, v: ArrayLike, place: Place, axes: str = "local", point: Maybe = None, out: Out = None
    ) -> Two:
        """Return the derivatives (dq, dv) of ``velocity``, each (..., 6, nv): row (omega, v), column variable.

        They are those of its components in the axes asked for; dq is along ``integrate``, dv the Jacobian, which in the
        place's own axes is the derivative of the pose too: a small step d moves it by the twist J d.

        Example:
            >>> dq, dv = torsor.library.two_link().velocity_derivatives([0.0, 0.0], [1.0, 0.0], "link2")
            >>> dq[3].round(9).tolist(), dv[4].round(9).tolist()
            ([0.0, 0.4], [0.8, 0.4])
        """
        found: Any = self.kernels.at_place("velocity_derivatives", (q, v), place, axes, point, out)
        return found[0], found[1]

    def acceleration_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        place: Place,
        axes: str = "local",
        point: Maybe = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``acceleration``, each (..., 6, nv), as in ``velocity_derivatives``.

        Example:
            >>> robot = torsor.library.two_link()
            >>> dq, dv, da = robot.acceleration_derivatives([0.0, 0.0], [1.0, 0.0], [0.0, 0.0], "link2")
            >>> dv[3].round(9).tolist()  # of the centripetal acceleration -0.4 v1^2 - 0.4 (v1 + v2)^2
            [-1.6, -0.8]
        """
        found: Any = self.kernels.at_place("acceleration_derivatives", (q, v, a), place, axes, point, out)
        return found[0], found[1], found[2]

    def jerk_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        j: ArrayLike,
        place: Place,
        axes: str = "local",
        point: Maybe = None,
        out: Out = None,
    ) -> tuple[Array, Array, Array, Array]:
        """Return the derivatives (dq, dv, da, dj) of ``jerk``, each (..., 6, nv), as in ``velocity_derivatives``.

        Example:
            >>> robot, still = torsor.library.two_link(), [0.0, 0.0]
            >>> dq, dv, da, dj = robot.jerk_derivatives(still, [1.0, 0.0], still, still, "link1")
            >>> bool(np.allclose(dj, robot.jacobian(still, "link1"))), da[3].round(9).tolist()
            (True, [-1.2, 0.0])
        """
        found: Any = self.kernels.at_place("jerk_derivatives", (q, v, a, j), place, axes, point, out)
        return found[0], found[1], found[2], found[3]

    def manipulability(
        self, q: ArrayLike, place: Place, rows: str = "all", point: Maybe = None, out: Out = None
    ) -> Array:
        """Return the manipulability (...) of a link or frame: sqrt(det(J J^T)), Yoshikawa 1985; 0 where J loses rank.

        ``rows`` are the velocities that count: "all" six, "angular" or "linear" (those of the origin, or of ``point``
        in the place's axes). It is the same in all axes. A robot with fewer coordinates than rows has sqrt(det(J^T J)).

        Example:
            >>> arm = torsor.library.two_link()  # 0.4 m x 0.4 m x sin(elbow)
            >>> float(arm.manipulability([0.0, np.pi / 2], "link2", rows="linear").round(9))
            0.16
        """
        return self.kernels.at_place("manipulability", (q,), place, "local", point, out, rows)

    def manipulability_gradient(
        self, q: ArrayLike, place: Place, rows: str = "all", point: Maybe = None, out: Out = None
    ) -> Array:
        """Return the derivative (..., nv) of ``manipulability`` by q, along ``integrate``; NaN where J loses rank.

        Example:
            >>> arm = torsor.library.two_link()
            >>> (arm.manipulability_gradient([0.3, np.pi / 3], "link2", "linear").round(9) + 0.0).tolist()
            [0.0, 0.08]
        """
        return self.kernels.at_place("manipulability_gradient", (q,), place, "local", point, out, rows)

    def cartesian_mass_matrix(
        self,
        q: ArrayLike,
        place: Place,
        axes: str = "local",
        point: Maybe = None,
        rows: str = "all",
        out: Out = None,
    ) -> Array:
        """Return (J M^-1 J^T)^-1 (..., 6, 6), or (..., 3, 3) of the "angular" or "linear" ``rows``; Khatib 1987.

        J is ``jacobian(q, place, axes, point)``. Where J loses rank some directions have infinite mass: entries are
        infinite, NaN or, near such a place, very large. So are all entries of a robot that can never move in all rows.

        Example:
            >>> arm = torsor.library.free_flying_arm()
            >>> arm.cartesian_mass_matrix(arm.neutral(), arm.link_names[-1], rows="linear").shape
            (3, 3)
        """
        return self.kernels.at_place("cartesian_mass_matrix", (q,), place, axes, point, out, rows)

    def null_space(
        self,
        q: ArrayLike,
        place: Place,
        kind: str = "dynamic",
        rows: str = "all",
        point: Maybe = None,
        out: Out = None,
    ) -> Array:
        """Return N (..., nv, nv): N v is the part of v that leaves a link or frame at rest, J N = 0 and N N = N.

        ``kind`` is "dynamic", N = 1 - M^-1 J^T (J M^-1 J^T)^-1 J, whose transpose maps forces to those that do not
        accelerate the place, or "kinematic", N = 1 - J^+ J, symmetric. ``rows`` and ``point`` as in ``manipulability``.
        Rows of J that depend on the others to within 1e-9 are left out, so that N is right where J loses rank too.

        Example:
            >>> arm = torsor.library.panda()
            >>> N = arm.null_space(arm.neutral() + 0.3, "panda_hand")
            >>> bool(np.allclose(arm.jacobian(arm.neutral() + 0.3, "panda_hand") @ N, 0, atol=1e-10))
            True
        """
        one_of(kind, ("dynamic", "kinematic"), self.name, "kind of null_space")
        if kind == "kinematic":
            return self.kinematic_null_space(q, place, rows, point, out)
        return self.kernels.at_place("null_space", (q,), place, "local", point, out, rows)

    def kinematic_null_space(
        self, q: ArrayLike, place: Place, rows: str = "all", point: Maybe = None, out: Out = None
    ) -> Array:
        """Return ``null_space(q, place, "kinematic", rows, point)``: N = 1 - J^+ J (..., nv, nv).

        Example:
            >>> arm = torsor.library.planar_chain(3)
            >>> float(arm.kinematic_null_space([0.1, 0.2, 0.3], "link3", "linear").trace().round(9))
            1.0
        """
        return self.kernels.at_place("kinematic_null_space", (q,), place, "local", point, out, rows)

    def wrench_at(
        self,
        q: ArrayLike,
        place: str | int,
        moment: Maybe = None,
        force: Maybe = None,
        axes: str = "world",
        point: Maybe = None,
    ) -> Array:
        """Return ``external`` (..., L, 6) of a force (..., 3), N, and a moment (..., 3), N m, of the environment.

        The force acts at the origin of the place, or at ``point`` (..., 3) in the place's axes, whatever the axes are;
        ``axes`` says only in which axes the components are: those of the base ("world", and "aligned", which is the
        same here), or those of the place ("local"). So the moment is about that point, not about the base's origin, and
        J^T of ``jacobian(q, place, "aligned", point)`` maps (moment, force) to generalised forces. Results add up.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, 0, 0))
            >>> external = robot.wrench_at([0.3], "link1", force=[0, -9.81 * 3, 0], point=[1.0, 0, 0])  # a weight
            >>> float(robot.inverse_dynamics([0.3], [0.0], [0.0], external)[0].round(6)) == round(
            ...     float(29.43 * np.cos(0.3)), 6
            ... )
            True
        """
        return wrench_at(self.kernels, q, place, moment, force, axes, point)

    # Energy, momentum, centre of mass

    def kinetic_energy(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the kinetic energy (...), in J: v^T M v / 2, rotors included.

        Example:
            >>> float(torsor.library.two_link().kinetic_energy([0.0, 0.0], [1.0, 0.0]).round(9))
            0.2
        """
        return self.kernels.call("kinetic_energy", q, v, out=out)

    def potential_energy(self, q: ArrayLike, out: Out = None) -> Array:
        """Return the potential energy (...) in gravity, in J, zero with the centre of mass at the base's origin.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> float(robot.potential_energy([np.pi / 2]).round(9))
            29.43
        """
        return self.kernels.call("potential_energy", q, out=out)

    def center_of_mass(self, q: ArrayLike, out: Out = None) -> Array:
        """Return the centre of mass (..., 3) of the moving links, in base axes.

        Example:
            >>> torsor.library.two_link().center_of_mass([0.0, 0.0]).round(9).tolist()
            [0.4, 0.0, 0.0]
        """
        return self.kernels.call("center_of_mass", q, out=out)

    def momentum(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return (..., 6): angular momentum about the centre of mass, and linear momentum, in base axes.

        Example:
            >>> (torsor.library.two_link().momentum([0.0, 0.0], [1.0, 0.0]).round(9) + 0.0).tolist()
            [0.0, 0.0, 0.24, 0.0, 0.4, 0.0]
        """
        return self.kernels.call("momentum", q, v, out=out)

    def centroidal_momentum_matrix(self, q: ArrayLike, out: Out = None) -> Array:
        """Return A (..., 6, nv) with A v = ``momentum``: angular about the centre of mass, then linear, in base axes.

        Example:
            >>> (torsor.library.two_link().centroidal_momentum_matrix([0.0, 0.0]).round(9) + 0.0)[[2, 4]].tolist()
            [[0.24, 0.12], [0.4, 0.1]]
        """
        return self.kernels.call("centroidal_momentum_matrix", q, out=out)

    def centroidal_momentum_matrix_rate(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the rate (..., 6, nv) of ``centroidal_momentum_matrix``: momentum changes at A a + A' v.

        Example:
            >>> robot, q, v = torsor.library.two_link(), [0.3, 0.5], [1.0, 2.0]
            >>> bias = robot.centroidal_momentum_matrix_rate(q, v) @ v
            >>> bool(np.allclose(bias, robot.centroidal_momentum_bias(q, v)))
            True
        """
        return self.kernels.call("centroidal_momentum_matrix_rate", q, v, out=out)

    def centroidal_momentum_bias(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return A' v (..., 6), the rate of ``momentum`` at zero acceleration: moment (N m), then force (N).

        Example:
            >>> (torsor.library.two_link().centroidal_momentum_bias([0.0, 0.0], [1.0, 0.0]).round(9) + 0.0).tolist()
            [0.0, 0.0, 0.0, -0.4, 0.0, 0.0]
        """
        return self.kernels.call("centroidal_momentum_bias", q, v, out=out)

    def composite_inertia(self, q: ArrayLike, out: Out = None) -> Array:
        """Return the locked inertia (..., 6, 6) of the moving links about the centre of mass, in base axes.

        All joints locked, the robot is one rigid body: rotational inertia (kg m^2) in the first block, mass (kg) in the
        second; rotors that spin are not in it.

        Example:
            >>> torsor.library.two_link().composite_inertia([0.0, 0.0]).diagonal().round(9).tolist()
            [0.2, 0.24, 0.24, 1.0, 1.0, 1.0]
        """
        return self.kernels.call("composite_inertia", q, out=out)

    def center_of_mass_jacobian(self, q: ArrayLike, out: Out = None) -> Array:
        """Return J (..., 3, nv): J v is the velocity of the centre of mass, in base axes.

        Example:
            >>> torsor.library.two_link().center_of_mass_jacobian([0.0, 0.0])[1].round(9).tolist()
            [0.4, 0.1]
        """
        return self.kernels.call("center_of_mass_jacobian", q, out=out)

    def center_of_mass_jacobian_rate(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the rate (..., 3, nv) of ``center_of_mass_jacobian``.

        Example:
            >>> torsor.library.two_link().center_of_mass_jacobian_rate([0.0, 0.0], [1.0, 0.0])[0].round(9).tolist()
            [-0.4, -0.1]
        """
        return self.kernels.call("center_of_mass_jacobian_rate", q, v, out=out)

    def center_of_mass_velocity(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the velocity (..., 3) of the centre of mass, m/s in base axes.

        Example:
            >>> torsor.library.two_link().center_of_mass_velocity([0.0, 0.0], [1.0, 0.0])[1].round(9).tolist()
            0.4
        """
        return self.kernels.call("center_of_mass_velocity", q, v, out=out)

    def center_of_mass_acceleration(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return the acceleration (..., 3) of the centre of mass, m/s^2 in base axes, without gravity.

        Example:
            >>> robot = torsor.library.two_link()
            >>> robot.center_of_mass_acceleration([0.0, 0.0], [1.0, 0.0], [0.0, 0.0])[0].round(9).tolist()
            -0.4
        """
        return self.kernels.call("center_of_mass_acceleration", q, v, a, out=out)

    # Positions

    def integrate(self, q: ArrayLike, dv: ArrayLike, out: Out = None) -> Array:
        """Return the positions (..., nq) after one unit of time at the constant velocity dv (..., nv).

        Example:
            >>> torsor.library.two_link().integrate([0.1, 0.2], [1.0, 1.0]).tolist()
            [1.1, 1.2]
        """
        return self.kernels.call("integrate", q, dv, out=out)

    def difference(self, q: ArrayLike, q_end: ArrayLike, out: Out = None) -> Array:
        """Return the dv (..., nv) with ``integrate(q, dv) = q_end``.

        Example:
            >>> torsor.library.two_link().difference([0.1, 0.2], [1.1, 1.2]).tolist()
            [1.0, 1.0]
        """
        return self.kernels.call("difference", q, q_end, out=out)

    # Derivatives and rates

    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
        out: Out = None,
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives (dq, dv, da) of tau = ID(q, v, a), each (..., nv, nv): row force, column variable.

        dq is along ``integrate``: moving q to integrate(q, d) changes tau by dq d. da is the mass matrix. External
        wrenches, given in their links' axes at their origins, are fixed in the link (``fixed_in="link"``) or in the
        world (``fixed_in="world"``) while q changes. In the world, a force acts at the link's origin or, with
        ``points`` (..., L, 3) in the links' axes, at that point of the link, as a weight does; the rest of the moment
        is a couple. By analytical recursion in O(n x depth), for every joint, with rotors, springs and friction (the
        jump of Coulomb friction at rest is left out); Barman 2020, chapter III; Singh, Russell and Wensing 2022.

        Example:
            >>> robot = torsor.library.two_link()
            >>> dq, dv, da = robot.inverse_dynamics_derivatives([0.0, np.pi / 2], [1.0, 2.0], [0.0, 0.0])
            >>> dv.round(9).tolist()
            [[-0.16, -0.24], [0.08, 0.0]]
            >>> bool((da == robot.mass_matrix([0.0, np.pi / 2])).all())
            True
        """
        return derivatives(self.kernels, "inverse_dynamics_derivatives", (q, v, a), external, fixed_in, points, out)

    def forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
        out: Out = None,
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives (dq, dv, dtau) of a = FD(q, v, tau), each (..., nv, nv): row acceleration.

        They are -M^-1 d ID/dq, -M^-1 d ID/dv and M^-1, with the derivatives of inverse dynamics at that acceleration,
        and ``fixed_in`` and ``points`` as there.

        Example:
            >>> robot = torsor.library.two_link()
            >>> dq, dv, dtau = robot.forward_dynamics_derivatives([0.0, 0.5], [1.0, 2.0], [0.1, 0.2])
            >>> bool(np.allclose(dtau @ robot.mass_matrix([0.0, 0.5]), np.eye(2), atol=1e-12))
            True
        """
        return derivatives(self.kernels, "forward_dynamics_derivatives", (q, v, tau), external, fixed_in, points, out)

    def joint_wrench_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
        out: Out = None,
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives (dq, dv, da) of the joint reactions, each (..., L, 6, nv).

        Row (moment, force) of the reaction in the link's axes at its origin, column variable; Barman 2020, ch. III.
        ``fixed_in`` and ``points`` as in ``inverse_dynamics_derivatives``.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
            >>> dq, dv, da = robot.joint_wrench_derivatives([0.0], [1.0], [0.0])
            >>> dv[0, :, 0].round(9).tolist()  # the centrifugal force 3 v^2 along the rod
            [0.0, 0.0, 0.0, -6.0, 0.0, 0.0]
        """
        return derivatives(self.kernels, "joint_wrench_derivatives", (q, v, a), external, fixed_in, points, out)

    def hybrid_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        tau: ArrayLike,
        forced: Sequence[str],
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
        out: Out = None,
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives (dq, dv, dgiven), each (..., nv, nv), of the results of ``hybrid_dynamics``.

        Row k is the computed quantity of coordinate k: its acceleration if it is ``forced``, else its force. Columns of
        dgiven are the given quantities: forces of forced coordinates, accelerations of the others. With none forced it
        is ``inverse_dynamics_derivatives``, with all forced ``forward_dynamics_derivatives``.

        Example:
            >>> robot = torsor.library.two_link()
            >>> state = [0.0, 0.5], [1.0, 2.0], [0.0, 3.0], [0.1, 0.0]
            >>> dq, dv, dgiven = robot.hybrid_dynamics_derivatives(*state, forced=["joint1"])
            >>> bool(np.isclose(dgiven[0, 0], 1 / robot.mass_matrix([0.0, 0.5])[0, 0]))
            True
        """
        values = (q, v, a, tau)
        return derivatives(
            self.kernels, "hybrid_dynamics_derivatives", values, external, fixed_in, points, forced=forced, out=out
        )

    def inverse_dynamics_hessian(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, weight: ArrayLike, external: Maybe = None, out: Out = None
    ) -> Array:
        """Return the second derivatives (..., 3 nv, 3 nv) of weight . tau, with tau = ID(q, v, a), by (q, v, a).

        ``weight`` (..., nv) are the multipliers of the forces, as in the Hessian of a Lagrangian or in differential
        dynamic programming. It is the Hessian of u -> weight . ID(integrate(q, u_q), v + u_v, a + u_a) at u = 0, and so
        symmetric for every joint; external wrenches stay fixed in their links. The blocks (v, a) and (a, a) are zero,
        (a, q) is the derivative of M(q) weight. By analytical recursion in O(n x depth).

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
            >>> H = robot.inverse_dynamics_hessian([0.0], [1.0], [0.0], [2.0])  # of 2 (4 a + 29.43 cos(q))
            >>> H.shape, float(H[0, 0].round(9))
            ((3, 3), -58.86)
        """
        return self.kernels.call("inverse_dynamics_hessian", q, v, a, weight, external=external, out=out)

    def force_rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        j: ArrayLike,
        external: ArrayLike | None = None,
        external_rate: ArrayLike | None = None,
        higher: Sequence[ArrayLike] = (),
        out: Out = None,
    ) -> tuple[Array, ...]:
        """Return (tau, tau'), each (..., nv): the forces of a motion and their rates in time, N m/s or N/s.

        ``j`` (..., nv) is the rate of a. ``external_rate`` (..., L, 6) are the rates of the components of ``external``
        in the links' axes: zero for wrenches that are fixed in their links. ``higher`` are the next rates of a, any
        number of them, and bring as many more rates of tau (external wrenches then have no higher ones).
        One recursion for every joint, floating bases, rotors, springs, dampers and smooth friction; order 1 is that of
        Guarino Lo Bianco 2009, eqs. 3-21.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
            >>> tau, rate = robot.force_rate([0.0], [1.0], [0.0], [2.0])  # 4 j - 3 g v sin(q)
            >>> tau.round(9).tolist(), rate.round(9).tolist()
            ([29.43], [8.0])
        """
        return rates(self.kernels, "force_rate", (q, v, a, j), higher, external, external_rate, out=out)

    def joint_wrench_rates(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        j: ArrayLike,
        external: ArrayLike | None = None,
        external_rate: ArrayLike | None = None,
        higher: Sequence[ArrayLike] = (),
        out: Out = None,
    ) -> tuple[Array, ...]:
        """Return the joint reactions and the rates of their components in the links' axes, each (..., L, 6).

        Arguments as in ``force_rate``.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, 0, 0))
            >>> _, rate = robot.joint_wrench_rates([0.0], [1.0], [0.5], [0.0])
            >>> rate[0].round(9).tolist()  # the centrifugal force 3 v^2 grows
            [0.0, 0.0, 0.0, -3.0, 0.0, 0.0]
        """
        return rates(self.kernels, "joint_wrench_rates", (q, v, a, j), higher, external, external_rate, out=out)

    def jvp(
        self,
        name: str,
        inputs: Sequence[ArrayLike],
        tangents: Sequence[ArrayLike | None],
        *,
        components: bool = False,
        out: Out = None,
        **options: Any,
    ) -> tuple[Results, Results]:
        """Return (value, derivative along the tangents) of the method ``name`` at its inputs.

        ``tangents`` are the directions of the inputs, None for zero. That of q is (..., nv), along ``integrate``, or
        (..., nq) with ``components=True``. Methods with several results give tuples. External wrenches are the last
        inputs where ``external=True`` is given; other ``options`` are those of ``function``. ``out`` has arrays for
        the values, then for the derivatives. Forward mode: about three times the operations of the method itself.

        Example:
            >>> robot = torsor.library.two_link()
            >>> tau, change = robot.jvp("gravity_force", ([0.1, 0.2],), ([1.0, 0.0],))
            >>> tau.tolist() == robot.gravity_force([0.1, 0.2]).tolist()
            True
        """
        return jvp(self.closure, name, inputs, tangents, components, options, out)

    def vjp(
        self,
        name: str,
        inputs: Sequence[ArrayLike],
        cotangents: ArrayLike | Sequence[ArrayLike],
        *,
        components: bool = False,
        out: Out = None,
        **options: Any,
    ) -> tuple[Results, tuple[Array, ...]]:
        """Return (value, gradients): of the sum of cotangents times results of the method ``name``, by each input.

        ``cotangents`` has the shape of the result, or is a tuple of such for several results. The gradient by q is
        (..., nv), along ``integrate``, or (..., nq) with ``components=True``. Options as in ``jvp``, whose adjoint this
        is; ``out`` has arrays for the values, then for the gradients. Reverse mode: about four times the operations of
        the method itself.

        Example:
            >>> robot = torsor.library.two_link()
            >>> energy, (dq, dv) = robot.vjp("kinetic_energy", ([0.1, 0.2], [1.0, 2.0]), 1.0)
            >>> bool(np.allclose(dv, robot.mass_matrix([0.1, 0.2]) @ [1.0, 2.0]))  # the momenta
            True
        """
        return vjp(self.closure, name, inputs, cotangents, components, options, out)

    def sparse(self, name: str, *inputs: ArrayLike, **options: Any) -> Sparse | tuple[Sparse, ...]:
        """Return the result of the method ``name``, a matrix or several, without its structural zeros.

        Forces do not depend on the motion of other branches of the tree, so large robots have many structural zeros;
        solvers take values with a sparsity pattern. Options as in ``jvp``.

        Example:
            >>> robot = torsor.library.random_tree(20, seed=2, types=("revolute",), extras=False)
            >>> M = robot.sparse("mass_matrix", np.zeros(20))
            >>> M.values.size < 400, bool(np.allclose(M.dense(), robot.mass_matrix(np.zeros(20))))
            (True, True)
        """
        return sparse(self.closure, name, inputs, options)

    # Parameters

    def parametric(self, paths: Sequence[str] | Mapping[str, Any]) -> Parametric[Self]:
        """Return the robot with some of its numbers as inputs of its methods, with derivatives by them.

        Paths are "links.LINK.mass", ".com" (3), ".inertia" (6: xx, xy, xz, yy, yz, zz about the centre of mass);
        "joints.JOINT.origin" (3, of the child's frame in the parent's), ".turn" (3, a rotation vector applied after the
        placement's own rotation), ".point" (3, a point of the axis, in the child's axes), ".rotor_inertia",
        ".coulomb", ".viscous", ".stiffness"; and "gravity" (3). LINK and JOINT are names or indices; ".x" or ".xy"
        after a path selects one component. A link includes all parts that fixed joints weld to it. A mapping gives the
        numbers names of their own. {path: coefficient} instead of a path is one number that is added to several, as a
        Denavit-Hartenberg length is; it is 0 for the original robot.

        Example:
            >>> robot = torsor.library.two_link()
            >>> model = robot.parametric(["links.link2.mass", "joints.joint2.origin.x"])
            >>> p, state = model.values, ([0.1, 0.2], [1.0, 0.0], [0.0, 0.0])
            >>> bool(np.allclose(model.inverse_dynamics(*state, p), robot.inverse_dynamics(*state)))
            True
            >>> model.derivatives("inverse_dynamics", *state, p).shape
            (2, 2)
        """
        return Parametric(self, self.closure, free_numbers(self, paths))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters: "link2.mx" and so on, then "joint3.rotor_inertia", "...coulomb", "...viscous"."""
        return parameter_names(self)

    def parameters(self) -> Array:
        """Return the parameters (p,): m, m c, J (xx, xy, xz, yy, yz, zz) of each link about its origin, then drives.

        Behind those of the links come rotor inertia, Coulomb and viscous friction of each velocity of each joint.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
            >>> dict(zip(robot.parameter_names, robot.parameters().round(9).tolist()))["link1.Jzz"]
            4.0
        """
        return parameters(self)

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return Y(q, v, a) (..., nv, p) with inverse_dynamics(q, v, a) = Y @ parameters().

        Forces of springs and motors are not included: they are not among the parameters.

        Example:
            >>> robot = torsor.library.stanford()
            >>> q, v, a = np.ones(6), np.ones(6), np.ones(6)
            >>> bool(np.allclose(robot.regressor(q, v, a) @ robot.parameters(), robot.inverse_dynamics(q, v, a)))
            True
        """
        return self.kernels.call("regressor", q, v, a, out=out)

    def energy_regressor(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return h(q, v) (..., p), in J: kinetic energy and energy in gravity = h @ parameters().

        Columns of friction are zero; the energy of springs and rotor spin is not included. Zero of the potential as in
        ``potential_energy``. Gautier and Khalil 1988.

        Example:
            >>> robot = torsor.library.stanford()
            >>> energy = robot.kinetic_energy(np.ones(6), np.ones(6)) + robot.potential_energy(np.ones(6))
            >>> bool(np.allclose(robot.energy_regressor(np.ones(6), np.ones(6)) @ robot.parameters(), energy))
            True
        """
        return self.kernels.call("energy_regressor", q, v, out=out)

    def power_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return y(q, v, a) (..., p), in W: v . inverse_dynamics(q, v, a) = y @ parameters().

        It is the rate of ``energy_regressor`` along the motion plus the power of friction. Springs and motors as in
        ``regressor``.

        Example:
            >>> robot = torsor.library.stanford()
            >>> q, v, a = np.ones(6), np.ones(6), np.ones(6)
            >>> bool(np.allclose(robot.power_regressor(q, v, a), v @ robot.regressor(q, v, a)))
            True
        """
        return self.kernels.call("power_regressor", q, v, a, out=out)

    def with_parameters(self, parameters: ArrayLike) -> Self:
        """Return the robot with other parameters (p,), in the order of ``parameter_names`` and in their units.

        Mass, centre of mass and inertia of each link follow from m, m c and J about its origin. Springs and motors
        stay. Inconsistent inertias raise an error, unless the link already allows them (``Link.strict``).

        Example:
            >>> robot = torsor.library.two_link()
            >>> heavy = robot.with_parameters(2 * robot.parameters())
            >>> heavy.links[1].mass, heavy.links[1].com.round(9).tolist()
            (1.0, [-0.2, 0.0, 0.0])
        """
        return with_parameters(self, parameters)

    def base_parameters(
        self, seed: int = 0, among: Sequence[str] = ("*",), measured: Sequence[str] | None = None
    ) -> BaseParameters:
        """Return the base parameters: the smallest set that determines all forces, which identification can find.

        Parameters that no motion can distinguish are regrouped with those of the parent links by rules (Gautier and
        Khalil 1990), and checked numerically: a QR decomposition of the regressor over many random motions finds the
        dependent columns. ``among`` names the unknown parameters, with * for any letters; the others are known and
        are not regrouped, nor are rotor inertias and friction of a free base, which has none. ``measured`` names the
        coordinates whose forces are known (all by default): those of a free base alone show all parameters of the links
        (Ayusawa, Venture and Nakamura 2014), but no friction of joints. With loops, the forces are those of the active
        coordinates (``constrained_regressor``), and "*" alone leaves rotor inertias and friction of passive joints
        known: name them too, "elbow.viscous".

        Example:
            >>> found = torsor.library.planar_chain(2).without_friction().base_parameters()
            >>> [name for name in found.names if name.startswith("link2")], found.by_rule
            (['link2.mx', 'link2.my', 'link2.Jzz'], True)
        """
        if self.loops:
            return closed_base_parameters(self.closure, seed, among, measured)
        rows = indices_of(measured, self.coordinate_names, f"{self.name}: measured")
        return base_parameters(self.kernels, seed, among, rows)

    # Closed loops: closure and assembly

    def closure_error(self, q: ArrayLike, out: Out = None) -> Array:
        """Return the errors of closure (..., c): lengths in m, angles as 2 sin(angle/2), coordinates of couplings.

        One entry for each closure equation: a hinge has five, some of which may be redundant. Wheels have their height
        (m), and 0 for the slips, which are equations of velocities.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.closure_error([0.4, 0.1]).round(9).tolist()
            [0.2]
        """
        return self.kernels.call("closure_error", q, out=out)

    def closure_jacobian(self, q: ArrayLike, out: Out = None) -> Array:
        """Return A (..., c, nv): the rate of ``closure_error`` is A v; for the slips of wheels, A v is the slip (m/s).

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.closure_jacobian([0.4, 0.1]).tolist()
            [[1.0, -2.0]]
        """
        return self.kernels.call("closure_jacobian", q, out=out)

    def assemble(
        self, q_active: ArrayLike, guess: ArrayLike | None = None, missing: str = "raise", out: Out = None
    ) -> Array:
        """Return positions (..., nq) that close the loops, with the active coordinates (..., N) as given.

        Of several assembly modes it is the one near ``guess`` (..., nq), by default one that is found automatically.
        From there the active coordinates are moved to their goal in steps, each closed by damped Newton iterations, for
        the whole batch at once. Coordinates that cannot be reached raise an ``AssemblyError`` with the closest ones
        that can, and with the least error of closure; or give NaN, with ``missing="nan"``.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.with_active(["joint1"]).assemble([0.4]).round(9).tolist()
            [0.4, 0.2]
        """
        return written(assemble(self.closure, q_active, guess, missing), out, "assemble")

    def closed_positions(self, q: ArrayLike, out: Out = None) -> Array:
        """Return positions (..., nq) with closed loops near ``q`` (..., nq), by minimum-norm steps of all coordinates.

        No coordinate need be active, and none is fixed; ``assemble`` fixes the active ones.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.closed_positions([0.5, 0.0]).round(9).tolist()
            [0.4, 0.2]
        """
        return written(closed_positions(self.closure, q), out, "closed_positions")

    def mobility(self, q: ArrayLike | None = None, output: str | int | None = None, point: bool = False) -> Mobility:
        """Return the mobility at positions q (nq,) that close the loops; by default at a regular configuration.

        Degrees of freedom, redundant closure equations, motions that remain with the active coordinates locked, and
        directions of the active coordinates that are blocked; see ``Mobility``. With the name of an ``output``, a link
        or frame, also singularities of the first kind (the drives move and the output does not) and of the second (the
        output moves with locked drives), with their directions: velocities (omega, v) of the output in its own
        axes or, with ``point``, those of its origin.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.mobility().dof
            1
        """
        return self.closure.mobility(q, output, point)

    def active_sets(
        self, q: ArrayLike | None = None, candidates: Sequence[str] | None = None, most: int = 20
    ) -> list[tuple[tuple[str, ...], float]]:
        """Return minimal sets of coordinates that can drive the mechanism at positions q (nq,), the best first.

        Each has its ``control``: 1 where the set controls all motions fully; singular sets (0) are left out.
        ``candidates`` are the coordinates that may have a drive, by default all.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> [(names, round(control, 3)) for names, control in robot.active_sets()]
            [(('joint1',), 0.894), (('joint2',), 0.447)]
        """
        return self.closure.active_sets(q, candidates, most)

    # Closed loops: motion and forces of the active coordinates

    def constrained_velocities(self, q: ArrayLike, v_active: ArrayLike, out: Out = None) -> Array:
        """Return the velocities (..., nv) of all coordinates, from those of the active ones (..., N): v = G v_active.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.with_active(["joint1"]).constrained_velocities([0.4, 0.2], [1.0]).tolist()
            [1.0, 0.5]
        """
        return constrained(self.closure, "constrained_velocities", q, v_active, out=out)

    def constrained_accelerations(self, q: ArrayLike, v_active: ArrayLike, a_active: ArrayLike, out: Out = None) -> Two:
        """Return (v, a), each (..., nv), of all coordinates, from the active ones: a = G a_active + G' v_active.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> v, a = robot.with_active(["joint1"]).constrained_accelerations([0.4, 0.2], [1.0], [3.0])
            >>> a.tolist()
            [3.0, 1.5]
        """
        found: Any = constrained(self.closure, "constrained_accelerations", q, v_active, a_active, out=out)
        return found[0], found[1]

    def constrained_inverse_dynamics(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        share: ArrayLike | None = None,
        out: Out = None,
    ) -> Array:
        """Return the forces (..., N) of the active coordinates of a motion with closed loops.

        ``q`` (..., nq) are all positions (see ``assemble``), ``v_active`` and ``a_active`` (..., N) the rates of the
        active ones. Passive joints have no drive, only their springs and friction. Where more coordinates are active
        than there are degrees of freedom, the forces minimise the sum of tau^2 / ``share`` (..., N), or
        tau^T share^-1 tau of symmetric positive definite matrices (..., N, N). Coordinates that move without a drive,
        such as a floating base or the link of an elastic joint, must be active too: their force is the one that the
        motion would require. Khalil 2010, eqs. 55-57.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> tau = robot.with_active(["joint1"]).constrained_inverse_dynamics([0.4, 0.2], [0.0], [1.0])
            >>> M, G = robot.mass_matrix([0.4, 0.2], loops="open"), np.array([1.0, 0.5])
            >>> bool(np.isclose(tau[0], G @ M @ G))
            True
        """
        values = q, v_active, a_active
        return driven(self.closure, "constrained_inverse_dynamics", values, share, Loads(external), out=out)

    def constrained_regressor(self, q: ArrayLike, v_active: ArrayLike, a_active: ArrayLike) -> Array:
        """Return Y (..., N, p) with constrained_inverse_dynamics(q, v_active, a_active) = Y @ parameters().

        G^T times the ``regressor`` of the tree, where v = G v_active: arguments as in ``constrained_inverse_dynamics``,
        with as many active coordinates as degrees of freedom. Forces of springs and motors are not included.

        Example:
            >>> robot = torsor.library.four_bar()
            >>> q = robot.assemble([0.5])
            >>> Y, tau = robot.constrained_regressor(q, [1], [2]), robot.constrained_inverse_dynamics(q, [1], [2])
            >>> bool(np.allclose(Y @ robot.parameters(), tau))
            True
        """
        return constrained_regressor(self.closure, q, v_active, a_active)

    def constrained_forward_dynamics(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        tau_active: ArrayLike,
        external: ArrayLike | None = None,
        method: str = "projection",
        out: Out = None,
    ) -> Array:
        """Return the accelerations (..., N) of the active coordinates that forces (..., N) on them cause.

        Arguments as in ``constrained_inverse_dynamics``, whose inverse it is; a floating base that is active has the
        force zero. ``method`` is "projection" on the motions of the closed mechanism (Khalil 2010, eq. 58), or
        "multipliers", the same result by the equations of all coordinates with Lagrange multipliers (see
        ``closed_forward_dynamics``, which is also valid where the active coordinates are singular).

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> a = robot.with_active(["joint1"]).constrained_forward_dynamics([0.4, 0.2], [0.0], [1.0])
            >>> M, G = robot.mass_matrix([0.4, 0.2], loops="open"), np.array([1.0, 0.5])
            >>> bool(np.isclose(a[0], 1 / (G @ M @ G)))
            True
        """
        if one_of(method, ("projection", "multipliers"), self.name, "method") == "multipliers":
            if out is not None:
                raise ModelError("out with method 'multipliers'", where=self.name, allowed="'projection'")
            return active_accelerations(self.closure, q, v_active, tau_active, external)
        values, loads = (q, v_active, tau_active), Loads(external)
        return constrained(self.closure, "constrained_forward_dynamics", *values, loads=loads, out=out)

    def loop_forces(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        share: ArrayLike | None = None,
        out: Out = None,
    ) -> Array:
        """Return the Lagrange multipliers (..., c) of the closure equations, 0 for redundant ones.

        tau_tree = tau_active + A^T lambda: for an equation that keeps origins together lambda is the force (N) along
        that axis of frame a, for one that keeps axes parallel a moment (N m). Of wheels: the forces of the ground.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> belt = robot.loop_forces([0.4, 0.2], [0.0], [1.0])
            >>> tau = robot.inverse_dynamics([0.4, 0.2], [0.0, 0.0], [1.0, 0.5], loops="open")
            >>> bool(np.isclose(tau[1], -2.0 * belt[0]))  # nothing else drives joint2
            True
        """
        return driven(self.closure, "loop_forces", (q, v_active, a_active), share, Loads(external), out=out)

    def loop_wrenches(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        share: ArrayLike | None = None,
        out: Out = None,
    ) -> Array:
        """Return the wrenches in the cut joints (..., l, 6): (moment, force) that frame a exerts on frame b.

        At the origin of frame a in its axes, for each of the l loops that are cut joints; couplings have none.
        Redundant equations (see ``mobility``) carry nothing: rigid-body mechanics does not determine the distribution
        of a load over redundant bearings.

        Example:
            >>> arm = torsor.library.planar_chain(2, length=1.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> arm = arm.with_frame("tip", "link2", torsor.spatial.make_pose(p=[1, 0, 0]))
            >>> arm = arm.with_frame("hook", "base", torsor.spatial.make_pose(p=[2, 1, 0]))
            >>> hung = arm.with_loop("wire", "hook", "tip", "rod", length=1.0).with_active(["joint1"])
            >>> wire = hung.loop_wrenches([0.0, 0.0], [0.0], [0.0])[0]  # it carries half of the last link
            >>> float(wire[4].round(9))
            14.715
        """
        return driven(self.closure, "loop_wrenches", (q, v_active, a_active), share, Loads(external), out=out)

    def constrained_joint_wrenches(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        share: ArrayLike | None = None,
        out: Out = None,
    ) -> Array:
        """Return the reactions (..., L, 6) in the joints of the tree while loops are closed.

        The wrench that each parent exerts on its link, (moment, force) at the link's origin in the link's axes, as in
        ``joint_wrenches``: that of the tree loaded by the wrenches in the cut joints (``loop_wrenches``, also for
        redundant equations). A coupling's force is in the component along the joint's axis.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> wrenches = robot.constrained_joint_wrenches([0.4, 0.2], [0.0], [1.0])
            >>> tree = robot.open_tree()  # a belt carries no load from link to link
            >>> bool(np.allclose(wrenches, tree.joint_wrenches([0.4, 0.2], [0.0, 0.0], [1.0, 0.5])))
            True
        """
        return driven(
            self.closure, "constrained_joint_wrenches", (q, v_active, a_active), share, Loads(external), out=out
        )

    # Closed loops: motion and forces of all coordinates, by multipliers

    def closed_forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external: ArrayLike | None = None, out: Out = None
    ) -> Array:
        """Return the accelerations (..., nv) of all coordinates that forces (..., nv) on them cause, loops closed.

        M a + C v + g + friction - J^T external = tau + A^T lambda, with A a = -A' v (closure: Khalil 2010, eq. 4). The
        velocities (..., nv) satisfy A v = 0, see ``constrained_velocities``. No coordinate need be active, and dead
        points of the active ones do not matter: only where the closure equations lose rank is there no solution.
        Without loops, it is ``forward_dynamics``.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> a = robot.closed_forward_dynamics([0.4, 0.2], [0.0, 0.0], [1.0, 0.0])
            >>> M, G = robot.mass_matrix([0.4, 0.2], loops="open"), np.array([1.0, 0.5])
            >>> bool(np.allclose(a, G / (G @ M @ G)))
            True
        """
        return by_multipliers(self.closure, "closed_forward_dynamics", q, v, tau, external, out=out)

    def closed_inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, a_active: ArrayLike, external: ArrayLike | None = None, out: Out = None
    ) -> Array:
        """Return the forces (..., N) of the active coordinates that accelerate them by a_active (..., N), loops closed.

        All other coordinates are idle: free of drives, moved by springs, loops and inertia alone. So a floating base,
        the springs of a leg and rods that spin about their axes need not be active: those with motors are enough. The
        velocities v (..., nv) of all coordinates satisfy A v = 0, see ``closed_velocities``.
        ``closed_forward_dynamics`` with these forces gives the accelerations of all coordinates.

        Example:
            >>> robot = torsor.library.two_link().with_active(["joint1"])  # an acrobot, with an idle elbow
            >>> tau = robot.closed_inverse_dynamics([0.4, 0.2], [0.0, 0.0], [1.5])
            >>> robot.closed_forward_dynamics([0.4, 0.2], [0.0, 0.0], [tau[0], 0.0])[0].round(9)
            np.float64(1.5)
        """
        return by_multipliers(self.closure, "closed_inverse_dynamics", q, v, a_active, external, out=out)

    def closed_loop_forces(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external: ArrayLike | None = None, out: Out = None
    ) -> Array:
        """Return the Lagrange multipliers (..., c) of the closure equations under forces (..., nv) on all coordinates.

        M a + C v + g + friction - J^T external = tau + A^T lambda, as in ``loop_forces``; 0 for redundant equations.
        Arguments as in ``closed_forward_dynamics``.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> still = [0.4, 0.2], [0.0, 0.0], [1.0, 0.0]
            >>> a, belt = robot.closed_forward_dynamics(*still), robot.closed_loop_forces(*still)
            >>> tau = robot.inverse_dynamics([0.4, 0.2], [0.0, 0.0], a, loops="open")
            >>> bool(np.isclose(tau[1], -2.0 * belt[0]))  # nothing else drives joint2
            True
        """
        return by_multipliers(self.closure, "closed_loop_forces", q, v, tau, external, out=out)

    def closed_velocities(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the velocities (..., nv) with closed loops, A v = 0, that are nearest to ``v`` (..., nv).

        Nearest in kinetic energy: v - M^-1 A^T (A M^-1 A^T)^-1 A v, the velocities after an impulse of the loops.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> v = robot.closed_velocities([0.4, 0.2], [2.0, 0.0])
            >>> bool(np.isclose(v[0], 2 * v[1]))
            True
        """
        return by_multipliers(self.closure, "closed_velocities", q, v, out=out)

    def loop_loads(self, q: ArrayLike, forces: ArrayLike, out: Out = None) -> Array:
        """Return the wrenches (..., L, 6) of the loops on the links, at their origins in their axes (N m and N).

        ``forces`` (..., c) are the multipliers of ``loop_forces`` or ``closed_loop_forces``. As external wrenches they
        make the cut tree move as the closed mechanism does, and ``joint_wrenches`` of it (``loops="open"``) with them
        are the loads of its bearings. Where equations are redundant, the distribution is one of many. Couplings exert
        no wrench on a link.

        Example:
            >>> chain = torsor.library.planar_chain(1).with_frame("tip", "link1", torsor.spatial.make_pose(p=[1, 0, 0]))
            >>> rod = chain.with_frame("nail", "base", torsor.spatial.make_pose(p=[1, 0, 0]))
            >>> rod = rod.with_loop("held", "nail", "tip", "spherical")  # it cannot fall
            >>> held = rod.loop_loads([0.0], rod.closed_loop_forces([0.0], [0.0], [0.0]))
            >>> float(rod.joint_wrenches([0.0], [0.0], [0.0], held, loops="open")[0, 4].round(3))  # half of its weight
            4.905
        """
        return self.kernels.call("loop_loads", q, forces, out=out)

    # Closed loops: derivatives by the active coordinates

    def constrained_velocity_derivatives(self, q: ArrayLike, v_active: ArrayLike, out: Out = None) -> Two:
        """Return the derivatives (dq, dv) of ``constrained_velocities``, each (..., nv, N); dv is G.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> dq, dv = robot.with_active(["joint1"]).constrained_velocity_derivatives([0.4, 0.2], [1.0])
            >>> dq.tolist(), dv.tolist()  # a belt is the same everywhere
            ([[0.0], [0.0]], [[1.0], [0.5]])
        """
        found: Any = constrained(self.closure, "constrained_velocity_derivatives", q, v_active, out=out)
        return found[0], found[1]

    def constrained_acceleration_derivatives(
        self, q: ArrayLike, v_active: ArrayLike, a_active: ArrayLike, out: Out = None
    ) -> Three:
        """Return the derivatives (dq, dv, da) of the accelerations of all coordinates, each (..., nv, N); da is G.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, da = robot.constrained_acceleration_derivatives([0.4, 0.2], [1.0], [3.0])
            >>> da.tolist()
            [[1.0], [0.5]]
        """
        values = q, v_active, a_active
        found: Any = constrained(self.closure, "constrained_acceleration_derivatives", *values, out=out)
        return found[0], found[1], found[2]

    def constrained_inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
        share: ArrayLike | None = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``constrained_inverse_dynamics``, each (..., N, N): row force.

        da is the mass matrix G^T M G of the closed mechanism. With constant multipliers lambda, and v and a that change
        such that the loops stay closed,

            dtau/dq = G^T [d(ID - A^T lambda)/dq G + d(ID)/dv dv/dq + M da/dq]

        from the recursion of ``inverse_dynamics_derivatives``; ``fixed_in`` and ``points`` as there, ``share`` as in
        ``constrained_inverse_dynamics``.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, da = robot.constrained_inverse_dynamics_derivatives([0.4, 0.2], [1.0], [0.0])
            >>> M, G = robot.mass_matrix([0.4, 0.2], loops="open"), np.array([1.0, 0.5])
            >>> bool(np.isclose(da[0, 0], G @ M @ G))
            True
        """
        name, loads = "constrained_inverse_dynamics_derivatives", Loads(external, fixed_in, points)
        return driven_derivatives(self.closure, name, (q, v_active, a_active), share, loads, out=out)

    def constrained_forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        tau_active: ArrayLike,
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, dtau) of ``constrained_forward_dynamics``, each (..., N, N).

        They are -M_c^-1 d(tau)/dq, -M_c^-1 d(tau)/dv and M_c^-1 of the closed mechanism's mass matrix M_c, with the
        derivatives of its inverse dynamics at that acceleration.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, dtau = robot.constrained_forward_dynamics_derivatives([0.4, 0.2], [1.0], [0.0])
            >>> _, _, M = robot.constrained_inverse_dynamics_derivatives([0.4, 0.2], [1.0], [0.0])
            >>> bool(np.isclose(dtau[0, 0] * M[0, 0], 1.0))
            True
        """
        name, loads = "constrained_forward_dynamics_derivatives", Loads(external, fixed_in, points)
        found: Any = constrained(self.closure, name, q, v_active, tau_active, loads=loads, out=out)
        return found[0], found[1], found[2]

    def loop_force_derivatives(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        fixed_in: str = "link",
        points: ArrayLike | None = None,
        share: ArrayLike | None = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``loop_forces``, each (..., c, N); arguments as there.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, da = robot.loop_force_derivatives([0.4, 0.2], [0.0], [1.0])
            >>> bool(np.isclose(-2.0 * da[0, 0], robot.mass_matrix([0.4, 0.2], loops="open")[1] @ [1.0, 0.5]))
            True
        """
        loads = Loads(external, fixed_in, points)
        return driven_derivatives(
            self.closure, "loop_force_derivatives", (q, v_active, a_active), share, loads, out=out
        )

    def loop_wrench_derivatives(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        share: ArrayLike | None = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``loop_wrenches``, each (..., l, 6, N).

        External wrenches stay as they are in their links.

        Example:
            >>> arm = torsor.library.planar_chain(2, length=1.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> arm = arm.with_frame("tip", "link2", torsor.spatial.make_pose(p=[1, 0, 0]))
            >>> arm = arm.with_frame("hook", "base", torsor.spatial.make_pose(p=[2, 1, 0]))
            >>> hung = arm.with_loop("wire", "hook", "tip", "rod", length=1.0).with_active(["joint1"])
            >>> dq, dv, da = hung.loop_wrench_derivatives([0.0, 0.0], [0.0], [0.0])
            >>> still, more = (hung.loop_wrenches([0.0, 0.0], [0.0], [a]) for a in (0.0, 1.0))
            >>> bool(np.allclose(more - still, da[..., 0]))
            True
        """
        values, loads = (q, v_active, a_active), Loads(external)
        return driven_derivatives(self.closure, "loop_wrench_derivatives", values, share, loads, out=out)

    def constrained_joint_wrench_derivatives(
        self,
        q: ArrayLike,
        v_active: ArrayLike,
        a_active: ArrayLike,
        external: ArrayLike | None = None,
        share: ArrayLike | None = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``constrained_joint_wrenches``, each (..., L, 6, N).

        External wrenches stay as they are in their links.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot = robot.with_active(["joint1"])
            >>> dq, dv, da = robot.constrained_joint_wrench_derivatives([0.4, 0.2], [0.0], [1.0])
            >>> _, _, by_a = robot.open_tree().joint_wrench_derivatives([0.4, 0.2], [0.0, 0.0], [1.0, 0.5])
            >>> bool(np.allclose(da[..., 0], by_a @ [1.0, 0.5]))
            True
        """
        values, loads = (q, v_active, a_active), Loads(external)
        return driven_derivatives(self.closure, "constrained_joint_wrench_derivatives", values, share, loads, out=out)

    # Edits: each returns a new robot

    def with_gravity(self, gravity: ArrayLike) -> Self:
        """Return the robot under another gravity (3,), m/s^2, in base axes.

        Example:
            >>> torsor.library.two_link().with_gravity([0, -9.81, 0]).gravity.tolist()
            [0.0, -9.81, 0.0]
        """
        return edit.with_gravity(self, gravity)

    def with_frame(self, name: str, link: str, pose: ArrayLike) -> Self:
        """Return the robot with a named frame: ``pose`` (4 x 4) in the axes of a link or of another frame.

        Example:
            >>> robot = torsor.library.two_link().with_frame("tip", "link2", np.eye(4))
            >>> robot.place("tip").link
            1
        """
        return edit.with_frame(self, name, link, pose)

    def with_payload(
        self, link: str, mass: float, com: ArrayLike = (0, 0, 0), inertia: ArrayLike | None = None
    ) -> Self:
        """Return the robot with a load on a link or frame: mass (kg), centre of mass (m), inertia about it (kg m^2).

        ``com`` and ``inertia`` (3 x 3) are in the axes of that link or frame.

        Example:
            >>> torsor.library.two_link().with_payload("link2", 1.5).links[1].mass
            2.0
        """
        return edit.with_payload(self, link, mass, com, inertia)

    def with_posture(self, name: str, q: ArrayLike) -> Self:
        """Return the robot with a named configuration q (nq,), kept in ``robot.postures`` and in TOML and MJCF files.

        Positions are kept by name: after an edit, a posture has those that still exist, and new ones are neutral.

        Example:
            >>> robot = torsor.library.two_link().with_posture("home", [0.3, -1.2])
            >>> robot.postures["home"].tolist(), robot.fix("joint2", -1.2).postures["home"].tolist()
            ([0.3, -1.2], [0.3])
        """
        return edit.with_posture(self, name, q)

    def without_posture(self, name: str) -> Self:
        """Return the robot without a named configuration.

        Example:
            >>> dict(torsor.library.two_link().with_posture("home", [0.3, -1.2]).without_posture("home").postures)
            {}
        """
        return edit.without_posture(self, name)

    def with_joint_type(self, name: str, type: str) -> Self:
        """Return the robot with a joint of another type, at the same place and with the same axis.

        Limits, friction and rotor inertia have other units then and are lost, with a warning that names them; between
        revolute and continuous they stay. The coordinates of a joint with several are ``name/wx`` and so on.

        Example:
            >>> robot = torsor.library.planar_chain(2).with_joint_type("joint2", "spherical")
            >>> robot.nv, robot.coordinate_names[1]
            (4, 'joint2/wx')
        """
        return edit.with_joint_type(self, name, type)

    def fix(self, joint: str, value: ArrayLike = 0.0) -> Self:
        """Return the robot with a joint fixed at ``value``: (nq,) numbers, or one for a joint with one coordinate.

        Joints that follow it are fixed too. The links they moved are merged into their parents and stay as frames. A
        motor is fixed with its joint. An elastic joint whose motor is fixed ("elbow/motor") still moves on its spring.

        Example:
            >>> robot = torsor.library.two_link().fix("joint2", 0.5)
            >>> robot.nv, robot.link_names, [frame.name for frame in robot.frames]
            (1, ('link1',), ['link2'])
        """
        return edit.fix(self, joint, value)

    def attach(self, other: Mechanism, at: str, prefix: str = "") -> Self:
        """Return this robot carrying another one, whose base is welded to a link or frame of this one.

        ``prefix`` goes before the names of the other's links, joints, frames and postures, so that they do not clash.
        Postures of the same name become one, with the positions of both robots.

        Example:
            >>> arm = torsor.library.two_link()
            >>> arm.attach(arm, at="link2", prefix="second/").joint_names
            ('joint1', 'joint2', 'second/joint1', 'second/joint2')
        """
        return edit.attach(self, other, at, prefix)

    def subtree(self, link: str | int) -> Self:
        """Return the part of the robot that a moving link carries, itself and its joint included.

        The base of the new robot is an empty link where the old parent was; gravity keeps its components.

        Example:
            >>> torsor.library.stanford().subtree("link4").joint_names
            ('joint4', 'joint5', 'joint6')
        """
        return edit.subtree(self, link)

    def with_friction(
        self, joint: str | None = None, coulomb: Maybe = None, viscous: Maybe = None, smooth: float | None = None
    ) -> Self:
        """Return the robot with friction at a joint: Coulomb (N m or N), viscous (N m s/rad or N s/m).

        Without a joint, at all of them: a number for all but free joints (a floating base has no bearing), or one for
        each velocity of the joints (motors of elastic joints are not among them, joints that follow others keep what
        they have). Arguments that are not given keep their values. ``smooth`` (rad/s or m/s) replaces sign(v) by
        tanh(v / smooth); 0 is Coulomb's law. "joint/motor" means the friction of the joint's motor, at the output of
        the gear.

        Example:
            >>> robot = torsor.library.two_link().with_friction("joint1", coulomb=2.0, viscous=0.5)
            >>> robot.friction_force([3.0, 0.0]).tolist()
            [3.5, 0.0]
            >>> torsor.library.two_link().with_friction(viscous=[0.5, 0.25]).friction_force([2.0, 2.0]).tolist()
            [1.0, 0.5]
        """
        return edit.with_friction(self, joint, coulomb, viscous, smooth)

    def without_friction(self) -> Self:
        """Return the robot without friction; springs keep their damping.

        Example:
            >>> bool(torsor.library.six_axis_arm().without_friction().friction_force(np.ones(6)).any())
            False
        """
        return edit.without_friction(self)

    def with_spring(self, joint: str, stiffness: Any, damping: float = 0.0, rest: float = 0.0) -> Self:
        """Return the robot with a spring on a joint: it pulls it back with K(x) x + D x', where x = q - rest.

        ``stiffness`` K (N m/rad or N/m) is a number, or a law: a CasADi expression of one symbol, the deflection, or
        the same as text in x. ``damping`` D is in N m s/rad or N s/m, ``rest`` in rad or m. A stiffness and a damping
        of 0 remove the spring. See Khalil 2010, section 6.

        Example:
            >>> robot = torsor.library.two_link().with_spring("joint2", 100.0, rest=0.1)
            >>> robot.spring_force([0.0, 0.3]).round(12).tolist()
            [0.0, 20.0]
            >>> import casadi
            >>> x = casadi.SX.sym("x")
            >>> robot.with_spring("joint2", 100 + 500 * x**2).spring_force([0.0, 0.1]).round(12).tolist()
            [0.0, 10.5]
        """
        return edit.with_spring(self, joint, stiffness, damping, rest)

    def with_motor(
        self,
        joint: str,
        inertia: float,
        ratio: float = 1.0,
        carrier: str | None = None,
        axis: ArrayLike | None = None,
        stiffness: Any = None,
        damping: float = 0.0,
        mass: float = 0.0,
        place: ArrayLike | None = None,
        moments: ArrayLike | None = None,
    ) -> Self:
        """Return the robot with a motor that drives a joint: a rotor that spins ``ratio`` times as fast as the joint.

        ``inertia`` (kg m^2) is the rotor's about its spin axis; its mass, and its inertia when it does not spin, belong
        to the link that carries it: they are part of that link already, or ``mass`` (kg, stator and rotor) is added to
        it at ``place``, the motor's centre of mass in the carrier's axes (3,) or the pose (4 x 4) of a frame there
        whose z is the spin axis. ``moments`` is the inertia of the motor at rest about its centre of mass: across,
        across and about the spin axis, or 3 x 3 in the axes of ``place`` (by default a disc with the rotor's inertia).
        ``carrier`` is the link (or a frame on it, or the base) with the motor, by default the link that the joint sits
        on. ``axis`` is the spin axis in the carrier's axes, by default the axis of the joint. All gyroscopic terms are
        exact (Hua et al. 2022). A ``stiffness`` (a number or a law as for ``with_spring``) makes the joint elastic: the
        motor gets a coordinate of its own, "joint/motor", its angle theta after the gear, and pulls the joint with
        K(x) x + D x', where x = theta - q. The motor replaces the joint's ``rotor_inertia``.

        Example:
            >>> robot = torsor.library.two_link().with_motor("joint2", 1e-4, ratio=50, carrier="link1", stiffness=1e3)
            >>> robot.coordinate_names
            ('joint1', 'joint2', 'joint2/motor')
            >>> robot.forward_dynamics(np.zeros(3), np.zeros(3), [0, 0, 1.0]).round(4).tolist()
            [-0.1072, 0.1429, 4.0021]
        """
        motor = (inertia, ratio, carrier, axis, stiffness, damping, mass, place, moments)
        return edit.with_motor(self, joint, *motor)

    def without_motor(self, joint: str) -> Self:
        """Return the robot without the motor of a joint, which is then driven directly; the carrier keeps its mass.

        Example:
            >>> arm = torsor.library.two_link()
            >>> arm.with_motor("joint2", 1e-4, stiffness=1e3).without_motor("joint2") == arm
            True
        """
        return edit.without_motor(self, joint)

    def with_loop(
        self, name: str, frame_a: str, frame_b: str, kind: str = "revolute", length: float = 0.0, axis: Maybe = None
    ) -> Self:
        """Return the robot with a loop: a cut joint between two links or frames.

        The name of a joint stands for the frame of the link that it moves, with the origin at the joint. ``kind`` is
        weld, revolute, prismatic, cylindrical, universal, spherical, planar or rod (two balls, ``length`` apart,
        without mass). Axes are the z axes of the frames; a revolute joint needs them to point the same way, and the
        origins together. ``axis`` (3) is another axis, in each of the two frames' own axes: frames "name/a" and
        "name/b" are made whose z it is.

        Example:
            >>> chain = torsor.library.planar_chain(3).with_frame("tip", "link3", torsor.spatial.make_pose(p=[1, 0, 0]))
            >>> chain.with_loop("hinge", "tip", "base").loops[0].kind
            'revolute'
            >>> chain.with_loop("hinge", "tip", "base", axis=(0, 1, 0)).loops[0].a
            'hinge/a'
        """
        return edit_loops.with_loop(self, name, frame_a, frame_b, kind, length, axis)

    def with_wheel(
        self,
        name: str,
        link: str,
        radius: float = 0.0,
        kind: str = "wheel",
        axis: Maybe = None,
        point: ArrayLike = (0.0, 0.0, 0.0),
        roller: float = 0.0,
        ground: str = "",
    ) -> Self:
        """Return the robot with a wheel: a rolling contact of a link or frame with the ground, the base's plane z = 0.

        ``kind`` is wheel, omni, edge, ball or skid (see ``torsor.Wheel``), ``radius`` is in m. ``point`` (3), in m, is
        the centre and ``axis`` (3) the axle in the axes of the link, by default its z: the frame "name/axle" is made
        there. ``roller`` (rad) is the angle of the rollers of an omni wheel, ``ground`` another frame than the base.

        Example:
            >>> torsor.library.eel(3).with_wheel("keel", "link3", kind="edge", axis=(0, 1, 0)).mobility().dof
            6
        """
        return edit_loops.with_wheel(self, name, link, radius, kind, axis, point, roller, ground)

    def with_coupling(
        self, name: str, coefficients: Mapping[str, float | Sequence[float]], offset: float = 0.0
    ) -> Self:
        """Return the robot with a gear, belt or lock: the sum of coefficients times coordinates equals ``offset``.

        For a cam, a coefficient is a list of up to 4 numbers: the factors of q, q^2, q^3 and q^4.

        Example:
            >>> torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": 1.0}).loops[0].offset
            0.0
            >>> cam = torsor.library.two_link().with_coupling("cam", {"joint1": [0.5, -0.2], "joint2": -1.0})
            >>> cam.closure_error([2.0, 0.0]).round(9).tolist()
            [0.2]
        """
        return edit_loops.with_coupling(self, name, coefficients, offset)

    def with_contacts(
        self, places: Sequence[str] | Mapping[str, str], q: ArrayLike | None = None, kind: str = "point"
    ) -> Self:
        """Return the robot with links or frames held on the ground where they are at positions ``q`` (nq,).

        ``kind`` is "point" (3 equations: the origin of the place stays) or "surface" (6: it does not turn either), for
        all places, or {place: kind}. Each contact is a loop "PLACE/contact". ``closed_forward_dynamics`` is the motion
        with the contacts kept, ``closed_loop_forces`` are the forces (N), then moments (N m), of the ground on each
        place at its origin in base axes, in the order of ``places``, and ``closed_velocities`` are the velocities after
        an impact without rebound. Contacts hold both ways: whether the ground would have to pull is the user's to see.

        Example:
            >>> walker = torsor.library.quadruped()
            >>> q = walker.neutral()
            >>> walker.with_contacts(["fl_foot"], q).closure_error(q).round(9).tolist()
            [0.0, 0.0, 0.0]
        """
        return with_contacts(self, self.kernels, places, q, kind)

    def without_loop(self, name: str) -> Self:
        """Return the robot with a loop or coupling opened.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": 1.0})
            >>> robot.without_loop("belt").loops
            ()
        """
        return edit_loops.without_loop(self, name)

    def open_tree(self) -> Self:
        """Return the robot with all of its loops and couplings opened: the tree that its joints form, or itself.

        Methods of the tree's dynamics are refused for a robot with loops, since they ignore them: this one computes
        them.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": 1.0})
            >>> robot.open_tree() == torsor.library.two_link()
            True
        """
        return edit_loops.open_tree(self)

    def with_active(self, names: Sequence[str]) -> Self:
        """Return the robot with other active coordinates, in that order: those driven while its loops are closed.

        The name of a joint stands for all of its coordinates. Coordinates that move without a drive, such as a
        floating base, must be named too for forces and accelerations of the closed mechanism.

        Example:
            >>> torsor.library.two_link().with_active(["joint2"]).active
            ('joint2',)
        """
        return edit_loops.with_active(self, names)
