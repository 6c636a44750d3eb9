"""The Robot class: common methods, and accessors for specialised ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import common_shape, frozen_array, one_of, vectors
from torsor.base.errors import ModelError
from torsor.compiler import OperationCount, count_operations
from torsor.dynamics.recursions.places import AXES
from torsor.formats import write
from torsor.mechanism import Coupling, Mechanism, Shape, edit, edit_loops
from torsor.mechanism.free import free_numbers
from torsor.robot.base_parameters import with_parameters
from torsor.robot.centroidal import Centroidal
from torsor.robot.closed_loops.closed import Closed
from torsor.robot.closed_loops.closure import LoopClosure
from torsor.robot.closed_loops.contacts import with_contacts
from torsor.robot.derivatives import Derivatives, Loads, loaded, rates
from torsor.robot.inertial import Inertial
from torsor.robot.kernels import Loops, Out, Place, RobotKernels
from torsor.robot.parametric import Parametric
from torsor.robot.shapes import Shapes
from torsor.robot.target import Target
from torsor.robot.task import Task

if TYPE_CHECKING:
    from torsor.geometry.allowed import AllowedCollisions
    from torsor.robot.equations.equations import Equations

Two = tuple[Array, Array]


@dataclass(frozen=True, eq=False, repr=False)
class Robot(Mechanism):
    """A mechanism (links, joints, drives, loops) with compiled dynamics.

    Create a robot with ``torsor.load``, ``from_dh``, ``from_mdh``, ``from_screws``, ``torsor.build`` or
    ``torsor.library``. Quantities are in SI units and radians. Arrays may have leading batch axes, which broadcast:
    ``q`` is (..., nq); ``v``, ``a`` and forces are (..., nv). Spatial vectors have the angular part first.

    ``external`` is (..., L, 6): the wrench (moment, force) that the environment exerts on each moving link, at the
    link's origin, in link axes. ``out`` is an array of the result's shape, which is filled and returned, so that large
    results need not be allocated. If a method has several results, ``out`` is a tuple with an array or None for each.

    If a robot has loops, methods for tree dynamics raise ModelError, and the message names the corresponding method of
    ``closed``, if there is one. To cut the loops instead, pass ``loops="open"`` to methods that have this argument, or
    use ``open_tree()``.

    A robot is immutable. ``kernels`` holds its compiled functions. Specialised methods are grouped in accessors:
    ``derivatives``, ``closed`` (loops), ``inertial`` (parameters), ``centroidal``, ``shapes`` and ``task``.

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
        """Return a robot with the parts of a mechanism."""
        robot = cls.__new__(cls)  # skip the checks, which the mechanism has already passed
        robot.__dict__.update({f.name: getattr(mechanism, f.name) for f in fields(Mechanism)}, target=Target())
        return robot

    @cached_property
    def kernels(self) -> RobotKernels:
        """Compiled functions of the robot."""
        return RobotKernels(self, self.target, lambda algorithm: self.closed.closure.choice(algorithm))

    # Accessors, each created once

    @cached_property
    def derivatives(self) -> Derivatives:
        """Derivatives of dynamics and kinematics with respect to positions, velocities, accelerations and forces."""
        return Derivatives(self.closed.closure)

    @cached_property
    def closed(self) -> Closed:
        """The mechanism with its loops closed: closure, assembly, mobility and dynamics, which run on the host."""
        return Closed(LoopClosure(self.kernels.exact if self.target.device == "cuda" else self.kernels))

    @cached_property
    def inertial(self) -> Inertial[Self]:
        """Inertial and friction parameters, regressors and base parameters."""
        return Inertial(self.closed.closure, partial(with_parameters, self))

    @cached_property
    def centroidal(self) -> Centroidal:
        """Centroidal momentum matrix, locked inertia, and motion of the centre of mass."""
        return Centroidal(self.kernels)

    @cached_property
    def shapes(self) -> Shapes:
        """Distances between collision shapes, and the link pairs that may touch."""
        return Shapes(self)

    @cached_property
    def task(self) -> Task:
        """Task-space quantities of a link or frame: manipulability, null spaces, Cartesian mass, rates."""
        return Task(self.kernels)

    # Collision shapes

    def with_shapes(self, place: str, shapes: Sequence[Shape]) -> Self:
        """Return a copy whose collision shapes on a link or frame are ``shapes``, in its axes.

        An empty list removes the shapes.

        Example:
            >>> arm = torsor.library.two_link().with_shapes("link2", [torsor.Shape("capsule", (0.05, 0.4))])
            >>> [shape.shape for shape in arm.links[1].shapes]
            ['capsule']
        """
        from torsor.geometry.pairs import with_shapes

        return with_shapes(self, place, shapes)

    def with_allowed_collisions(self, allowed: AllowedCollisions | Sequence[tuple[str, str, str]] | str | Path) -> Self:
        """Return a copy with another list of link pairs that may touch.

        The list replaces the one from the robot's file. ``allowed`` is an allowed collision matrix, a list of (link,
        link, reason), or the path of an .srdf file, whose <disable_collisions> elements are read.

        Example:
            >>> arm = torsor.library.two_link().with_allowed_collisions([("link1", "link2", "user")])
            >>> arm.allowed_collisions
            (('link1', 'link2', 'user'),)
        """
        from torsor.geometry.pairs import with_allowed_collisions

        return with_allowed_collisions(self, allowed)

    # Target, files and functions

    def to(self, dtype: Any = None, device: str | None = None, threads: int | str | None = None) -> Self:
        """Return a copy of the robot that is evaluated on another target.

        - ``dtype``: float64 or float32.
        - ``threads``: the maximum number of threads for a batch, or "auto" for all cores available to this process.
          Small batches use one thread.
        - ``device``: "cpu" (compiled code), "cuda" (an NVIDIA GPU with CuPy arrays, see docs/deploy/gpu.md; needs the
          extra ``gpu``) or "casadi" (CasADi's virtual machine, which compiles nothing and is slow).

        None leaves a setting unchanged. ``robot.closed`` never runs on a GPU. The relative error of float32
        accelerations is proportional to the condition number of the mass matrix. When such accelerations are first
        computed, a ModelWarning is issued if fewer than two digits are correct at the neutral position or at one of 24
        random positions within the limits.

        Example:
            >>> torsor.library.two_link().to(dtype="float32")
            <Robot 'two_link': 2 moving links, nq=2, nv=2, float32>
        """
        return replace(self, target=self.target.changed(self.name, dtype, device, threads))

    def save(self, path: str | Path) -> None:
        """Write the robot to a file: TOML, URDF, SDF, MJCF (.xml, .mjcf) or USD (.usda, .usd, .usdc).

        ``torsor.load`` restores an equal robot from TOML. A ``ModelWarning`` names forces and limits that the format
        cannot express. A ``ModelError`` is raised if the format cannot describe the structure. Meshes outside the
        folder of a URDF, SDF or MJCF file are copied next to it. See ``formats.write_urdf``, ``write_sdf``,
        ``write_mjcf`` and ``write_usd``.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     torsor.library.two_link().save(folder + "/arm.toml")
            ...     torsor.load(folder + "/arm.toml") == torsor.library.two_link()
            True
        """
        write(self, path)

    def function(self, name: str, place: Place = None, **options: Any) -> ca.Function:
        """Return the CasADi function of a method, such as "mass_matrix" or "derivatives.inverse_dynamics".

        ``place`` is the link or frame, for methods that take one; "jacobian:hand" is a short form. The options depend
        on the method:

        - ``external=True`` adds external wrenches as an input. For derivatives, ``external`` is "link", "world" or
          "point", which selects where the wrenches are fixed.
        - ``forced`` names the force-driven coordinates in hybrid dynamics.
        - ``order`` is the number of time derivatives in ``force_rate``.
        - ``loops="open"`` selects the tree that remains when the loops are cut.
        - For ``axes`` and ``rows`` see the method. ``point=True`` adds a point as the last input.

        Example:
            >>> torsor.library.two_link().function("inverse_dynamics")
            Function(inverse_dynamics:(q[2],v[2],a[2])->(inverse_dynamics[2]) SXFunction)
        """
        return self.kernels.traced(self.kernels.request(name, place, **options))

    def operation_count(self, name: str, place: Place = None, **options: Any) -> OperationCount:
        """Return the number of scalar operations of an algorithm for one state; see ``function`` for the arguments.

        Example:
            >>> torsor.library.two_link().operation_count("mass_matrix").trigonometric
            1
        """
        return count_operations(self.function(name, place, **options))

    @overload
    def equations(self, name: str, form: Literal["latex"] = "latex", *positional: Any, **options: Any) -> str: ...

    @overload
    def equations(self, name: str, form: Literal["sympy"], *positional: Any, **options: Any) -> Equations: ...

    @overload
    def equations(self, name: str, form: str, *positional: Any, **options: Any) -> Equations | str: ...

    def equations(
        self,
        name: str,
        form: str = "latex",
        symbols: bool | Sequence[str] | Mapping[str, Any] = False,
        simplify: bool = True,
        place: str | int | None = None,
        forced: Sequence[str] | None = None,
        loops: Loops = None,
        digits: int = 6,
        axes: str = "local",
    ) -> Equations | str:
        r"""Return the equations of a method, as LaTeX or as SymPy expressions (``Equations``).

        The traced function is expanded exactly and written in the shortest of several forms. c_12 denotes cos(q_1 +
        q_2), and v is written as the time derivative of q. The extra ``symbolic`` is required.

        ``symbols`` replaces numbers of the robot with symbols: True for all (m mass, r centre of mass, I inertia, l
        length, g), or paths as in ``parametric``, or a mapping that also names them. ``simplify=False`` returns the
        operations as they are computed, for robots of any size. ``digits`` is the number of digits in LaTeX. For
        other options see ``function``.

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
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: Maybe = None, loops: Loops = None, out: Out = None
    ) -> Array:
        """Return the generalised forces (..., nv) of a motion, in N m and N.

        They are tau = M(q) a + C(q, v) v + g(q) + friction(v) + springs(q) - sum of J^T external, computed by the
        Newton-Euler recursion (Barman 2020; Guarino Lo Bianco 2009; Khalil 2010). M includes rotor inertias.

        Args:
            q: positions (..., nq), in rad and m; leading axes are a batch and broadcast.
            v: velocities (..., nv), in rad/s and m/s; those of a floating base are in its own axes.
            a: accelerations (..., nv), in rad/s^2 and m/s^2.
            external: wrenches (..., L, 6) on the links, (moment in N m, force in N), in link axes; zero by default.
            loops: "open" cuts the loops of the robot.
            out: array (..., nv) for the result; by default, a new one is returned.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> float(robot.inverse_dynamics([0.0], [0.0], [0.0])[0].round(9))  # 3 kg, 1 m away
            29.43
        """
        return self.kernels.call("inverse_dynamics", q, v, a, external=external, loops=loops, out=out)

    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external: Maybe = None, loops: Loops = None, out: Out = None
    ) -> Array:
        """Return the accelerations (..., nv) due to generalised forces: the inverse of ``inverse_dynamics``.

        They are a = M(q)^-1 (tau - bias_force(q, v) + sum of J^T external), computed in O(n) by the articulated-body
        algorithm (Khalil 2010, section 3.3.2). The result is infinite where a joint moves no inertia.

        Args:
            q: positions (..., nq), in rad and m; leading axes are a batch and broadcast.
            v: velocities (..., nv), in rad/s and m/s.
            tau: generalised forces (..., nv), in N m and N.
            external: wrenches (..., L, 6) on the links, (moment in N m, force in N), in link axes; zero by default.
            loops: "open" cuts the loops of the robot.
            out: array (..., nv) for the result; by default, a new one is returned.

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
        external: Maybe = None,
        out: Out = None,
    ) -> Two:
        """Return (a, tau), each (..., nv), from the forces of some coordinates and the accelerations of the others.

        ``forced`` names the coordinates (or joints, for all their coordinates) whose force is given in ``tau`` and
        whose acceleration is computed. For all others, the acceleration is given in ``a`` and the force is computed.
        Input entries for computed values are ignored.

        If no coordinate is forced, this is inverse dynamics; if all are, it is forward dynamics. If the floating base
        is forced, it is the moving-base inverse model of Khalil 2010, eqs. 89-100.

        Example:
            >>> robot = torsor.library.two_link()
            >>> a, tau = robot.hybrid_dynamics([0, 0.5], [1, 0], [0, 2.0], [0.3, 0], forced=["joint1"])
            >>> robot.inverse_dynamics([0, 0.5], [1, 0], a).round(9).tolist() == tau.round(9).tolist()
            True
        """
        result = loaded(self.kernels, "hybrid_dynamics", (q, v, a, tau), Loads(external), {"forced": forced}, out)
        return result[0], result[1]

    def joint_wrenches(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: Maybe = None, loops: Loops = None, out: Out = None
    ) -> Array:
        """Return the joint reactions (..., L, 6): the wrench that each parent exerts on its link through the joint.

        Each wrench is (moment, force) at the link's origin in link axes, in N m and N (Barman 2020, Khalil 2010). Along
        the joint axis it is the sum of drive, spring, friction and rotor forces; bearings carry the other components.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> robot.joint_wrenches([0.0], [0.0], [0.0])[0].round(9).tolist()
            [0.0, 0.0, 29.43, 0.0, 29.43, 0.0]
        """
        return self.kernels.call("joint_wrenches", q, v, a, external=external, loops=loops, out=out)

    def mass_matrix(self, q: ArrayLike, loops: Loops = None, out: Out = None) -> Array:
        """Return the symmetric mass matrix M(q) (..., nv, nv), including rotor inertias.

        It is computed by the composite-rigid-body algorithm (Walker and Orin 1982). For a robot with loops, the mass
        matrix of the active coordinates is the last result of ``robot.closed.derivatives.inverse_dynamics``.

        Example:
            >>> torsor.library.two_link().mass_matrix([0.0, 0.0]).round(9).tolist()
            [[0.4, 0.16], [0.16, 0.12]]
        """
        return self.kernels.call("mass_matrix", q, loops=loops, out=out)

    def bias_force(self, q: ArrayLike, v: ArrayLike, loops: Loops = None, out: Out = None) -> Array:
        """Return the bias forces (..., nv) at zero acceleration: C(q, v) v + g(q) + friction(v) + springs(q).

        Example:
            >>> torsor.library.two_link().bias_force([0.0, np.pi / 2], [1.0, 0.0]).round(9).tolist()
            [0.0, 0.04]
        """
        return self.kernels.call("bias_force", q, v, loops=loops, out=out)

    def gravity_force(self, q: ArrayLike, loops: Loops = None, out: Out = None) -> Array:
        """Return the gravity forces g(q) (..., nv), which hold the robot at rest against gravity.

        Example:
            >>> torsor.library.slide_link().gravity_force([0.1, 0.2]).tolist()
            [0.0, 0.0]
        """
        return self.kernels.call("gravity_force", q, loops=loops, out=out)

    def friction_force(self, v: ArrayLike, out: Out = None) -> Array:
        """Return the friction forces (..., nv): Coulomb and viscous friction, friction models and spring dampers.

        Example:
            >>> torsor.library.two_link().with_friction("joint2", coulomb=1.0).friction_force([1.0, -2.0]).tolist()
            [0.0, -1.0]
        """
        return self.kernels.call("friction_force", v, out=out)

    def spring_force(self, q: ArrayLike, out: Out = None) -> Array:
        """Return the forces (..., nv) that balance the springs of joints and of elastic motors: K(x) x at deflection x.

        Example:
            >>> robot = torsor.library.two_link().with_motor("joint2", 1e-3, stiffness=100.0)
            >>> robot.spring_force([0.0, 0.0, 0.2]).tolist()  # the motor leads and pulls the joint forward
            [0.0, -20.0, 20.0]
        """
        return self.kernels.call("spring_force", q, out=out)

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike, loops: Loops = None, out: Out = None) -> Array:
        """Return C(q, v) (..., nv, nv): C v are the Coriolis and centrifugal forces; dM/dt - 2 C is skew-symmetric.

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
        """Return the twists (..., L, 6) of the moving links: (omega, v of the origin) in link axes.

        Example:
            >>> torsor.library.two_link().velocities([0.0, 0.0], [1.0, 0.0])[1].round(9).tolist()
            [0.0, 0.0, 1.0, 0.0, 0.8, 0.0]
        """
        return self.kernels.call("velocities", q, v, out=out)

    def accelerations(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return the accelerations (..., L, 6) of the moving links: (d omega/dt, acceleration of the origin).

        They are in link axes. The second part is the classical acceleration of the origin, without gravity.

        Example:
            >>> torsor.library.two_link().accelerations([0.0, 0.0], [1.0, 0.0], [0.0, 0.0])[1].round(9).tolist()
            [0.0, 0.0, 0.0, -0.8, 0.0, 0.0]
        """
        return self.kernels.call("accelerations", q, v, a, out=out)

    def pose(self, q: ArrayLike, place: str | int, out: Out = None) -> Array:
        """Return the pose (..., 4, 4) of a link (name or index) or named frame, in base axes.

        Example:
            >>> torsor.library.two_link().pose([0.0, 0.0], "link2")[:3, 3].round(9).tolist()
            [0.8, 0.0, 0.0]
        """
        return self.kernels.at_place("pose", (q,), place, out=out)

    def velocity(
        self, q: ArrayLike, v: ArrayLike, place: Place, axes: str = "local", point: Maybe = None, out: Out = None
    ) -> Array:
        """Return the twist (..., 6) of a link or named frame: (omega, v of its origin) in its own axes.

        ``point`` (..., 3), in m in the axes of the place, is a point fixed to the place; v is then the velocity of this
        point. ``axes="aligned"`` returns the same vectors in base axes. ``axes="world"`` returns the twist at the base
        origin in base axes, (omega, v - omega x p) for any point p of the place. See docs/compute/kinematics.md.

        Example:
            >>> robot = torsor.library.two_link()
            >>> robot.velocity([np.pi / 2, 0.0], [1.0, 0.0], "link1", axes="aligned").round(9).tolist()
            [0.0, 0.0, 1.0, -0.4, 0.0, 0.0]
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
        """Return the acceleration (..., 6) of a link or named frame: (d omega/dt, acceleration of its origin).

        In the place's own axes it equals J a + dJ/dt v + (0, omega x u), with the place's Jacobian J and twist (omega,
        u); in other axes it equals J a + dJ/dt v. For ``point`` and ``axes="aligned"`` see ``velocity``. With
        ``axes="world"`` it is the time derivative of the world twist, whose linear part is not a point's acceleration.

        Example:
            >>> torsor.library.two_link().acceleration([0.0, 0.0], [1.0, 0.0], [0.0, 0.0], "link1").round(9).tolist()
            [0.0, 0.0, 0.0, -0.4, 0.0, 0.0]
        """
        return self.kernels.at_place("acceleration", (q, v, a), place, axes, point, out)

    def jacobian(self, q: ArrayLike, place: Place, axes: str = "local", point: Maybe = None, out: Out = None) -> Array:
        """Return the Jacobian J (..., 6, nv) of a link or named frame: (omega, v of its origin) = J v, in its own axes.

        For ``axes`` ("local", "aligned", "world") and ``point`` (..., 3) see ``velocity``, which returns J v.

        Example:
            >>> robot = torsor.library.two_link()
            >>> robot.jacobian([np.pi / 2, 0.0], "link2", axes="aligned", point=[0.1, 0, 0])[3].round(9).tolist()
            [-0.9, -0.5]
        """
        return self.kernels.at_place("jacobian", (q,), place, axes, point, out)

    def wrench_at(
        self,
        q: ArrayLike,
        place: str | int,
        moment: Maybe = None,
        force: Maybe = None,
        axes: str = "world",
        point: Maybe = None,
    ) -> Array:
        """Return the ``external`` array (..., L, 6) of a force (..., 3) in N and a moment (..., 3) in N m.

        The environment applies the force at the origin of the place, or at ``point`` (..., 3) in the place's axes. The
        moment is about that point. ``axes`` are the axes of the components: base axes ("world" or "aligned") or place
        axes ("local"). J^T of ``jacobian(q, place, "aligned", point)`` maps (moment, force) to generalised
        forces. At least one of ``moment`` and ``force`` is required, and the place must not be fixed to the base. For
        several loads, add the results.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, 0, 0))
            >>> external = robot.wrench_at([0.3], "link1", force=[0, -9.81 * 3, 0], point=[1.0, 0, 0])  # a weight
            >>> bool(np.isclose(robot.inverse_dynamics([0.3], [0.0], [0.0], external)[0], 29.43 * np.cos(0.3)))
            True
        """
        one_of(axes, AXES, f"{self.name}: wrench_at", "axes")
        at = self.place(place)
        if at.link < 0:
            message = f"wrench_at cannot apply a load to {place!r}, because it is fixed to the base"
            raise ModelError(message, value=place, where=self.name, allowed="a moving link or a frame on one")
        if moment is None and force is None:
            fix = "pass moment=..., force=..., or both"
            raise ModelError("wrench_at needs a moment or a force", where=self.name, fix=fix)
        n, f, x = (
            np.zeros(3) if item is None else vectors(item, 3, self.name, what)
            for item, what in ((moment, "moment"), (force, "force"), (point, "point"))
        )
        x = at.pose[:3, 3] + x @ at.pose[:3, :3].T
        link = self.kernels.at_place("pose", (q,), at.link)
        shapes = {"moment": n.shape[:-1], "force": f.shape[:-1], "point": x.shape[:-1], "q": link.shape[:-2]}
        batch = common_shape(f"{self.name}: wrench_at", **shapes)
        R = at.pose[:3, :3] if axes == "local" else np.swapaxes(link[..., :3, :3], -1, -2)  # to the link's axes
        n, f = ((R @ item[..., None])[..., 0] for item in (n, f))
        wrench = np.concatenate(np.broadcast_arrays(n + np.cross(x, f), f), axis=-1)
        external = np.zeros((*batch, len(self.links), 6), dtype=link.dtype)
        external[..., at.link, :] = wrench
        return external

    # Energy, momentum, centre of mass

    def kinetic_energy(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the kinetic energy (...) in J: v^T M v / 2, including rotors.

        Example:
            >>> float(torsor.library.two_link().kinetic_energy([0.0, 0.0], [1.0, 0.0]).round(9))
            0.2
        """
        return self.kernels.call("kinetic_energy", q, v, out=out)

    def potential_energy(self, q: ArrayLike, out: Out = None) -> Array:
        """Return the potential energy (...) in J of gravity and springs.

        It is zero if the centre of mass is at the base origin and all springs are at rest.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, -9.81, 0))
            >>> float(robot.potential_energy([np.pi / 2]).round(9))
            29.43
        """
        return self.kernels.call("potential_energy", q, out=out)

    def center_of_mass(self, q: ArrayLike, out: Out = None) -> Array:
        """Return the centre of mass (..., 3) of the moving links, in m, in base axes.

        Example:
            >>> torsor.library.two_link().center_of_mass([0.0, 0.0]).round(9).tolist()
            [0.4, 0.0, 0.0]
        """
        return self.kernels.call("center_of_mass", q, out=out)

    def momentum(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the momentum (..., 6): angular (N m s, about the centre of mass), then linear (N s), in base axes.

        Example:
            >>> (torsor.library.two_link().momentum([0.0, 0.0], [1.0, 0.0]).round(9) + 0.0).tolist()
            [0.0, 0.0, 0.24, 0.0, 0.4, 0.0]
        """
        return self.kernels.call("momentum", q, v, out=out)

    # Positions

    def integrate(self, q: ArrayLike, dv: ArrayLike, out: Out = None) -> Array:
        """Return the positions (..., nq) after one unit of time at the constant velocity dv (..., nv).

        Example:
            >>> torsor.library.two_link().integrate([0.1, 0.2], [1.0, 1.0]).tolist()
            [1.1, 1.2]
        """
        return self.kernels.call("integrate", q, dv, out=out)

    def difference(self, q: ArrayLike, q_end: ArrayLike, out: Out = None) -> Array:
        """Return dv (..., nv) such that ``integrate(q, dv) = q_end``.

        Example:
            >>> torsor.library.two_link().difference([0.1, 0.2], [1.1, 1.2]).tolist()
            [1.0, 1.0]
        """
        return self.kernels.call("difference", q, q_end, out=out)

    # Rates

    def force_rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        j: ArrayLike,
        external: Maybe = None,
        external_rate: Maybe = None,
        higher: Sequence[ArrayLike] = (),
        out: Out = None,
    ) -> tuple[Array, ...]:
        """Return (tau, tau'), each (..., nv): the generalised forces of a motion and their time derivatives.

        ``j`` (..., nv) is the time derivative of a. The derivatives of forces are in N m/s or N/s. ``external_rate``
        (..., L, 6) contains the time derivatives of the components of ``external`` in link axes; they are zero for
        wrenches that are fixed in their links. ``higher`` lists further time derivatives of a, each of which adds one
        derivative of tau. Higher derivatives of external wrenches are then zero.

        The recursion covers every joint type, rotors, springs, dampers and smooth friction. For the first derivative,
        see Guarino Lo Bianco 2009, eqs. 3-21.

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
        external: Maybe = None,
        external_rate: Maybe = None,
        higher: Sequence[ArrayLike] = (),
        out: Out = None,
    ) -> tuple[Array, ...]:
        """Return the joint reactions and the time derivatives of their components in link axes, each (..., L, 6).

        The arguments are the same as for ``force_rate``.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, 0, 0))
            >>> _, rate = robot.joint_wrench_rates([0.0], [1.0], [0.5], [0.0])
            >>> rate[0].round(9).tolist()  # the centrifugal force 3 v^2 increases
            [0.0, 0.0, 0.0, -3.0, 0.0, 0.0]
        """
        return rates(self.kernels, "joint_wrench_rates", (q, v, a, j), higher, external, external_rate, out=out)

    # Parameters as inputs

    def parametric(self, paths: Sequence[str] | Mapping[str, Any]) -> Parametric[Self]:
        """Return a model of the robot in which selected parameters are inputs of its methods.

        The model also has derivatives with respect to these inputs. The paths are:

        - "links.LINK.mass", ".com" (3), ".inertia" (6: xx, xy, xz, yy, yz, zz about the centre of mass);
        - "joints.JOINT.origin" (3: of the child frame in the parent frame), ".turn" (3: a rotation vector applied after
          the rotation of the placement), ".point" (3: a point on the axis, in child axes), ".rotor_inertia",
          ".coulomb", ".viscous", ".stiffness";
        - "gravity" (3).

        LINK and JOINT are names or indices. A suffix ".x" or ".xy" selects one component. A link includes the links
        that fixed joints weld to it. A mapping names the inputs. In place of a path, {path: coefficient} defines one
        input, 0 for the original robot, that is added to several parameters, such as a Denavit-Hartenberg length.

        Example:
            >>> robot = torsor.library.two_link()
            >>> model = robot.parametric(["links.link2.mass", "joints.joint2.origin.x"])
            >>> p, state = model.values, ([0.1, 0.2], [1.0, 0.0], [0.0, 0.0])
            >>> bool(np.allclose(model.inverse_dynamics(*state, p), robot.inverse_dynamics(*state)))
            True
        """
        return Parametric(self, self.closed.closure, free_numbers(self, paths))

    # Edits: each returns a new robot. They are functions of ``mechanism`` whose first argument is the robot.

    with_frame = edit.with_frame
    with_payload = edit.with_payload
    with_posture = edit.with_posture
    without_posture = edit.without_posture
    with_joint_type = edit.with_joint_type
    fix = edit.fix
    attach = edit.attach
    subtree = edit.subtree
    with_friction = edit.with_friction
    without_friction = edit.without_friction
    with_spring = edit.with_spring
    with_motor = edit.with_motor
    without_motor = edit.without_motor
    with_loop = edit_loops.with_loop
    with_wheel = edit_loops.with_wheel
    without_loop = edit_loops.without_loop
    with_active = edit_loops.with_active

    def with_gravity(self, gravity: ArrayLike) -> Self:
        """Return a copy with another gravity vector (3,), m/s^2, in base axes.

        Example:
            >>> torsor.library.two_link().with_gravity([0, -9.81, 0]).gravity.tolist()
            [0.0, -9.81, 0.0]
        """
        return replace(self, gravity=frozen_array(gravity, (3,), self.name, "gravity"))

    def with_coupling(
        self, name: str, coefficients: Mapping[str, float | Sequence[float]], offset: float = 0.0
    ) -> Self:
        """Return a copy with a gear, belt or lock: the sum of coefficients times coordinates equals ``offset``.

        For a cam, a coefficient is a list of up to 4 numbers: the factors of q, q^2, q^3 and q^4.

        Example:
            >>> cam = torsor.library.two_link().with_coupling("cam", {"joint1": [0.5, -0.2], "joint2": -1.0})
            >>> cam.closed.error([2.0, 0.0]).round(9).tolist()
            [0.2]
        """
        return replace(self, loops=(*self.loops, Coupling(name, coefficients, offset)))

    def with_contacts(self, places: Sequence[str] | Mapping[str, str], q: Maybe = None, kind: str = "point") -> Self:
        """Return a copy in which links or frames are fixed to the ground at their poses for positions ``q`` (nq,).

        The default positions are neutral. ``kind`` is "point" (3 equations: the origin of the place is fixed) or
        "surface" (6: the orientation is fixed too). To set it for each place, pass ``places`` as {place: kind}. Each
        contact is a loop "PLACE/contact". With ``coordinates="all"``:

        - ``closed.forward_dynamics`` returns the motion while the contacts hold;
        - ``closed.loop_forces`` returns the forces (N), then moments (N m), of the ground on each place, at its origin
          in base axes, in the order of ``places``;
        - ``closed.velocities`` returns the velocities after an impact without rebound.

        Contacts are bilateral, so check whether the ground would have to pull.

        Example:
            >>> walker = torsor.library.quadruped()
            >>> q = walker.neutral()
            >>> walker.with_contacts(["fl_foot"], q).closed.error(q).round(9).tolist()
            [0.0, 0.0, 0.0]
        """
        return with_contacts(self, self.kernels, places, q, kind)

    def open_tree(self) -> Self:
        """Return the tree without loops and couplings, or the robot itself if it has none.

        Methods for trees raise ModelError for a robot with loops, but work on this tree.

        Example:
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": 1.0})
            >>> robot.open_tree() == torsor.library.two_link()
            True
        """
        return replace(self, loops=()) if self.loops else self


def checked_robot(robot: object) -> Robot:
    """Return ``robot`` if it is a Robot; raise ModelError otherwise, for example for a parallel robot."""
    if not isinstance(robot, Robot):
        fix = "robot.as_robot()" if hasattr(robot, "as_robot") else "torsor.load(path)"
        fix = "robot.at(p)" if hasattr(robot, "by_parameters") else fix  # a parametric robot
        raise ModelError(f"robot is {robot!r}", value=robot, allowed="a torsor.Robot", fix=fix)
    return robot
