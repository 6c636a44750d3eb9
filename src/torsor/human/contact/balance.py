"""The ground reaction: the wrench that keeps the body in equilibrium, and its distribution to two feet.

Inverse dynamics without the ground gives forces of the six global coordinates; the ground must exert them. With f their
force and n their moment about the origin,

    x_zmp = n_z / f_y      z_zmp = -n_x / f_y

is the zero-moment point, about which the ground exerts no horizontal moment (Barman 2020, section 5.2, y up). In double
support the leading foot takes the fraction s of the force, and of the moment

    n_F = s (n + (p_F - p) x f)      p = s p_F + (1 - s) p_R

with p_F and p_R the points of application at the leading and the trailing foot, which takes the rest: the sum is exact.
The joint torques are those without the ground minus the effect of the feet's wrenches on the joints.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe
from torsor.compiler import AnyKernel
from torsor.compiler.cache import source_hash
from torsor.human.body.coordinates import GLOBAL
from torsor.human.body.loads import Backpack, Box
from torsor.robot.robot import Robot


class Wrench(NamedTuple):
    """A force and its moment about the origin, in base axes (3 x 1 each)."""

    f: ca.SX
    n: ca.SX


def required(tau: ca.SX, q: ca.SX, origin: ca.SX) -> Wrench:
    """Return the wrench of the ground from the forces of the six global coordinates (three slides, yaw, tilt, list).

    ``origin`` (3 x 1) is the position of the pelvis.
    """
    yaw, tilt = q[3], q[4]
    aside = ca.vertcat(ca.cos(yaw), 0, -ca.sin(yaw))  # the axis of tilt
    ahead = ca.vertcat(ca.sin(yaw), 0, ca.cos(yaw))
    about = (tau[5] + ca.sin(tilt) * tau[3]) / ca.cos(tilt)
    own = tau[3] * ca.SX([0, 1, 0]) + tau[4] * aside + about * ahead
    return Wrench(tau[:3], own + ca.cross(origin, tau[:3]))


def moment_about(wrench: Wrench, axis: ca.SX, at: ca.SX) -> ca.SX:
    """Return the moment of a wrench about a hinge axis through a point, all in base axes: axis . (n - at x f)."""
    return ca.dot(axis, wrench.n - ca.cross(at, wrench.f))


class GroundReaction(NamedTuple):
    """The ground reaction: ``force`` (..., 3) (N) and ``moment`` (..., 3) (N m) about the origin.

    ``zmp`` (..., 2) is the zero-moment point (x, z) (m); ``twist`` (...) is the moment about the vertical through it.
    """

    force: Array
    moment: Array
    zmp: Array
    twist: Array


def ground_reaction(
    body: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, load: Backpack | Box | None = None
) -> GroundReaction:
    """Return the wrench that the ground must exert on a body (``library.human``) for a motion q, v, a (..., 55).

    What the body carries weighs too: give the ``load``, or ``result.robot`` of a predicted motion as the body, which
    already has it (then without ``load``). Without a vertical force, as in free fall, the zero-moment point does not
    exist, and ``zmp`` is NaN or infinite.

    Example:
        >>> body, still = torsor.library.human(), np.zeros(55)
        >>> ground = ground_reaction(body, still, still, still)
        >>> ground.force.round(6).tolist(), bool(abs(ground.zmp - body.center_of_mass(still)[[0, 2]]).max() < 1e-9)
        ([0.0, 716.13, 0.0], True)
        >>> ground_reaction(body, still, still, still, load=torsor.human.Box(10.0)).force.round(6).tolist()
        [0.0, 814.23, 0.0]
    """
    if not isinstance(body, Robot) or body.coordinate_names[:6] != GLOBAL:
        allowed, fix = f"a body whose first coordinates are {', '.join(GLOBAL)}", "torsor.library.human()"
        raise ModelError(describe(f"body is {body!r}", where="ground reaction", allowed=allowed, fix=fix))
    if load is not None:
        if not isinstance(load, Backpack | Box):
            allowed = "a Backpack or a Box"
            raise ModelError(describe(f"load is {load!r}", where="ground reaction", allowed=allowed))
        body = load.on(body)
    force, moment = _kernel(body)(q, v, a)
    with np.errstate(divide="ignore", invalid="ignore"):
        zmp = np.stack([moment[..., 2], -moment[..., 0]], axis=-1) / force[..., 1, None]
    twist = moment[..., 1] - (zmp[..., 1] * force[..., 0] - zmp[..., 0] * force[..., 2])
    return GroundReaction(force, moment, zmp, twist)


def _kernel(body: Robot) -> AnyKernel:
    def trace() -> ca.Function:
        q, v, a = (ca.SX.sym(name, body.nv) for name in "qva")
        origin = body.function("pose", place="pelvis")(q)[:3, 3]
        wrench = required(body.function("inverse_dynamics")(q, v, a), q, origin)
        outputs = ca.cse([ca.densify(each) for each in wrench])
        return ca.Function("ground", [q, v, a], outputs, list("qva"), ["f", "n"])

    pelvis = body.place("pelvis")  # names and frames are not in the identity of the body's kernels
    place = pelvis.link, pelvis.pose.tobytes()
    return body.kernels.kernel(("ground_reaction", place, source_hash("human/contact/balance.py")), trace)
