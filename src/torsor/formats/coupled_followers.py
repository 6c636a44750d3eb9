"""For formats without loops: couplings of two coordinates as joints that follow others, which is the same motion.

c1 q1 + c2 q2 = offset is q2 = k q1 + c with k = -c1 / c2 and c = offset / c2. The equation is substituted in all that
q2 occurs in: the joints that move with it, and the other couplings.
"""

from dataclasses import replace

from torsor.base.errors import ModelError, describe
from torsor.mechanism import Coupling, Joint, Mechanism


def without_couplings(mechanism: Mechanism, source: str, format: str) -> Mechanism:
    """Return a mechanism whose couplings are followers; raise ModelError for loops and couplings that cannot be.

    A joint that is passive and has no motor follows the other; if both could, the later one does.

    Example:
        >>> from torsor.mechanism import Link, build
        >>> links = [Link("ground"), Link("a", 1.0, (1, 0, 0)), Link("b", 1.0, (1, 0, 0))]
        >>> joints = [Joint("i", "revolute", "ground", "a"), Joint("j", "revolute", "a", "b")]
        >>> belt = Coupling("belt", {"i": 1.0, "j": -2.0}, offset=0.5)
        >>> follower = without_couplings(build("arm", links, joints, loops=[belt]), "arm", "URDF").joints[1]
        >>> follower.coordinate, follower.ratio, follower.offset
        ('i', 0.5, -0.25)
    """
    joints, couplings = list(mechanism.joints), list(mechanism.loops)
    while couplings:
        coupling = couplings.pop(0)
        if not isinstance(coupling, Coupling):
            found = f"{coupling.name!r} closes a loop, which {format} cannot express"
            fix = "save as .xml (MJCF) or .toml, or open it: robot.without_loop(name)"
            raise ModelError(describe(found, where=source, fix=fix))
        pair = _pair(coupling, joints, mechanism.active)
        if pair is None:
            found = f"the coupling {coupling.name!r} cannot be a joint that follows another, as {format} needs it"
            allowed = "a linear one of two joints with one degree of freedom, one of them without a motor"
            fix = "save as .toml, or as .xml (MJCF), or remove it: robot.without_loop(name)"
            raise ModelError(describe(found, where=source, allowed=allowed, fix=fix))
        leader, follower = pair
        factors = _factors(coupling)
        k, c = -factors[leader] / factors[follower], coupling.offset / factors[follower]
        joints = [
            replace(each, coordinate=leader, ratio=each.ratio * k, offset=each.ratio * c + each.offset)
            if each.coordinate == follower
            else each
            for each in joints
        ]
        couplings = [_substituted(each, follower, leader, k, c) for each in couplings if isinstance(each, Coupling)] + [
            each for each in couplings if not isinstance(each, Coupling)
        ]
    return replace(mechanism, joints=tuple(joints), loops=(), active=())


def _factors(coupling: Coupling) -> dict[str, float]:
    """Return the factor of each coordinate of a linear coupling."""
    return {name: factors[0] for name, factors in coupling.polynomials.items()}


def _pair(coupling: Coupling, joints: list[Joint], active: tuple[str, ...]) -> tuple[str, str] | None:
    """Return (leader, follower) of a coupling of two joints, or None if it is none."""
    named = [joint for joint in joints if joint.name in coupling.coefficients and not joint.follows]
    two = len(coupling.coefficients) == len(named) == 2
    if not coupling.is_linear or not two or any(joint.nv != 1 for joint in named):
        return None
    for follower in sorted(named, key=lambda joint: (joint.name in active, -named.index(joint))):
        if follower.motor is None:
            return next(joint.name for joint in named if joint is not follower), follower.name
    return None


def _substituted(coupling: Coupling, follower: str, leader: str, k: float, c: float) -> Coupling:
    """Return a coupling with q(follower) replaced by k q(leader) + c."""
    if follower not in coupling.coefficients or not coupling.is_linear:
        return coupling  # a polynomial is refused when its turn comes
    coefficients = _factors(coupling)
    factor = coefficients.pop(follower)
    total = coefficients.pop(leader, 0.0) + factor * k
    if total:
        coefficients[leader] = total
    if not coefficients:
        found = f"the coupling {coupling.name!r} repeats others, or contradicts them"
        raise ModelError(describe(found, fix="remove it: robot.without_loop(name)"))
    return replace(coupling, coefficients=coefficients, offset=coupling.offset - factor * c)
