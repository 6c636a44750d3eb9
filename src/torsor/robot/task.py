"""Task-space quantities of a link or frame of a robot: the accessor ``robot.task``."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import one_of
from torsor.robot.kernels import Out, Place, RobotKernels
from torsor.robot.method_names import Accessor


@dataclass(frozen=True, eq=False, repr=False)
class Task(Accessor):
    """Task-space quantities: ``robot.task``. ``place`` is a link (name or index) or a named frame.

    For ``axes`` and ``point`` see ``robot.velocity``. ``rows`` selects velocities: "all", "angular" or "linear".
    """

    _kernels: RobotKernels

    def jacobian_rate(
        self, q: ArrayLike, v: ArrayLike, place: Place, axes: str = "local", point: Maybe = None, out: Out = None
    ) -> Array:
        """Return the time derivative (..., 6, nv) of the components of ``jacobian`` with these ``axes`` and ``point``.

        Example:
            >>> torsor.library.two_link().task.jacobian_rate([0.0, 0.0], [0.0, 1.0], "link2")[3].round(9).tolist()
            [0.4, 0.0]
        """
        return self._kernels.at_place("jacobian_rate", (q, v), place, axes, point, out)

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
        """Return the jerk (..., 6) of a link or named frame: (second derivative of omega, jerk of its origin).

        ``j`` (..., nv) is the time derivative of a. The result is the time derivative of the vectors of
        ``acceleration``, seen from the base (Guarino Lo Bianco 2009, eqs. 5 and 8), for every joint type. For ``axes``
        and ``point`` see ``acceleration``; the default is the place's own axes.

        Example:
            >>> robot, still = torsor.library.two_link(), [0.0, 0.0]
            >>> (robot.task.jerk(still, [1.0, 0.0], still, still, "link1").round(9) + 0.0).tolist()
            [0.0, 0.0, 0.0, 0.0, -0.4, 0.0]
        """
        return self._kernels.at_place("jerk", (q, v, a, j), place, axes, point, out)

    def jerks(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, j: ArrayLike, out: Out = None) -> Array:
        """Return the jerks (..., L, 6) of the links: (second derivative of omega, jerk of the origin) in link axes.

        Example:
            >>> robot, still = torsor.library.two_link(), [0.0, 0.0]
            >>> (robot.task.jerks(still, [1.0, 0.0], still, still)[0].round(9) + 0.0).tolist()
            [0.0, 0.0, 0.0, 0.0, -0.4, 0.0]
        """
        return self._kernels.call("jerks", q, v, a, j, out=out)

    def manipulability(
        self, q: ArrayLike, place: Place, rows: str = "all", point: Maybe = None, out: Out = None
    ) -> Array:
        """Return the manipulability (...) of a link or frame: sqrt(det(J J^T)) (Yoshikawa 1985); 0 where J loses rank.

        ``rows`` selects "all" six velocities, or the "angular" or "linear" ones (of the origin, or of ``point`` in the
        place's axes). The result does not depend on the axes. If a robot has fewer coordinates than rows, it is
        sqrt(det(J^T J)).

        Example:
            >>> arm = torsor.library.two_link()  # 0.4 m x 0.4 m x sin(elbow)
            >>> float(arm.task.manipulability([0.0, np.pi / 2], "link2", rows="linear").round(9))
            0.16
        """
        return self._kernels.at_place("manipulability", (q,), place, "local", point, out, rows)

    def manipulability_gradient(
        self, q: ArrayLike, place: Place, rows: str = "all", point: Maybe = None, out: Out = None
    ) -> Array:
        """Return the derivative (..., nv) of ``manipulability`` along ``integrate``; 0 where J loses rank.

        Example:
            >>> arm = torsor.library.two_link()
            >>> (arm.task.manipulability_gradient([0.3, np.pi / 3], "link2", "linear").round(9) + 0.0).tolist()
            [0.0, 0.08]
        """
        return self._kernels.at_place("manipulability_gradient", (q,), place, "local", point, out, rows)

    def null_space(
        self, q: ArrayLike, place: Place, kind: str = "dynamic", rows: str = "all", point: Maybe = None, out: Out = None
    ) -> Array:
        """Return N (..., nv, nv), where N v is the part of v that keeps a link or frame at rest: J N = 0 and N N = N.

        ``kind`` is "dynamic", N = 1 - M^-1 J^T (J M^-1 J^T)^-1 J, whose transpose maps forces to forces that do not
        accelerate the place, or "kinematic", N = 1 - J^+ J, which is symmetric. For ``rows`` and ``point`` see
        ``manipulability``. Rows of J that depend on the others to within 1e-9 are dropped, so that N is also correct
        where J loses rank.

        Example:
            >>> arm = torsor.library.panda()
            >>> N = arm.task.null_space(arm.neutral() + 0.3, "panda_hand")
            >>> bool(np.allclose(arm.jacobian(arm.neutral() + 0.3, "panda_hand") @ N, 0, atol=1e-10))
            True
        """
        one_of(kind, ("dynamic", "kinematic"), self._kernels.mechanism.name, "kind of null_space")
        if kind == "kinematic":
            return self.kinematic_null_space(q, place, rows, point, out)
        return self._kernels.at_place("null_space", (q,), place, "local", point, out, rows)

    def kinematic_null_space(
        self, q: ArrayLike, place: Place, rows: str = "all", point: Maybe = None, out: Out = None
    ) -> Array:
        """Return ``null_space(q, place, "kinematic", rows, point)``: N = 1 - J^+ J (..., nv, nv).

        Example:
            >>> arm = torsor.library.planar_chain(3)
            >>> float(arm.task.kinematic_null_space([0.1, 0.2, 0.3], "link3", "linear").trace().round(9))
            1.0
        """
        return self._kernels.at_place("kinematic_null_space", (q,), place, "local", point, out, rows)

    def mass_matrix(
        self, q: ArrayLike, place: Place, axes: str = "local", point: Maybe = None, rows: str = "all", out: Out = None
    ) -> Array:
        """Return (J M^-1 J^T)^-1 (..., 6, 6), or (..., 3, 3) for "angular" or "linear" ``rows`` (Khatib 1987).

        J is ``jacobian(q, place, axes, point)``. Where J loses rank, some directions have infinite mass, and entries
        are infinite or NaN; near such a configuration they are very large. If the robot can never move in all these
        directions, this applies everywhere.

        Example:
            >>> arm = torsor.library.free_flying_arm()
            >>> arm.task.mass_matrix(arm.neutral(), arm.link_names[-1], rows="linear").shape
            (3, 3)
        """
        return self._kernels.at_place("cartesian_mass_matrix", (q,), place, axes, point, out, rows)
