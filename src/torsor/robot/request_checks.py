"""What a request may ask for: axes, points, loops that are cut open, coordinates by name."""

from collections.abc import Iterable, Sequence

from torsor.checks import flag, one_of
from torsor.dynamics import ALGORITHMS, Algorithm, Request
from torsor.dynamics.recursions.axes import AXES
from torsor.dynamics.requests.algorithms import NO_METHOD
from torsor.dynamics.requests.request import ROWS
from torsor.errors import ModelError, describe, listing
from torsor.mechanism import Mechanism, Wheel


def check_axes(algorithm: Algorithm, request: Request, where: str) -> None:
    """Raise ModelError for axes, a point or rows that an algorithm does not have."""
    one_of(request.axes, AXES if algorithm.in_axes else ("local",), where, f"axes of {request.name}")
    one_of(request.rows, tuple(ROWS) if algorithm.by_rows else ("all",), where, f"rows of {request.name}")
    flag(request.point, where, f"point of {request.name}")
    if request.point and not algorithm.at_point:
        raise ModelError(describe(f"{request.name} takes no point", where=where))
    if request.point and request.axes == "world":
        found = f"{request.name} with axes='world' and a point: the twist at the base's origin is that of all points"
        raise ModelError(describe(found, where=where, fix="leave the point out, or use axes='aligned'"))


def check_loops(mechanism: Mechanism, name: str, loops: str | None) -> None:
    """Raise ModelError for the dynamics of the tree where the mechanism has loops, unless ``loops`` is "open"."""
    algorithm, where = ALGORITHMS[name], mechanism.name
    if loops is not None and (not isinstance(loops, str) or loops != "open"):
        raise ModelError(describe(f"loops of {name} is {loops!r}", where=where, allowed="'open', or not given"))
    if loops == "open" and algorithm.closed:
        found, fix = f"{name} is computed with closed loops", "leave loops out"
        raise ModelError(describe(found, where=where, fix=fix))
    if loops is None and mechanism.loops and algorithm.instead:
        names = [repr(loop.name) for loop in mechanism.loops]
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        many = "s" if len(names) > 1 else ""
        rolls = all(isinstance(loop, Wheel) for loop in mechanism.loops)
        kind, harm = ("wheel", "let {} slip") if rolls else ("loop", "cut {} open")
        found = f"the robot has the {kind}{many} {listed}, and {name} would {harm.format('them' if many else 'it')}"
        own = "there is none" if algorithm.instead == NO_METHOD else f"{algorithm.instead} is the method"
        fix = f"{own} for closed loops; robot.open_tree(), or loops='open' where it is an argument, cuts them"
        raise ModelError(describe(found, where=where, fix=fix))


def coordinate_indices(mechanism: Mechanism, names: Sequence[str]) -> frozenset[int]:
    """Return the indices of coordinates; the name of a joint stands for all of its coordinates."""
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Iterable):
        raise ModelError(describe(f"forced is {names!r}", where=mechanism.name, allowed="names of coordinates"))
    of_joints = {joint.name: slices.v for joint, slices in zip(mechanism.joints, mechanism.coordinates, strict=True)}
    found, coordinates = set[int](), mechanism.coordinate_names
    for name in names:
        if not isinstance(name, str):
            raise ModelError(describe(f"forced has {name!r}", where=mechanism.name, allowed="names of coordinates"))
        if name in coordinates:
            found.add(coordinates.index(name))
        elif name in of_joints:
            found.update(range(of_joints[name].start, of_joints[name].stop))
        else:
            allowed = listing(coordinates, like=name)
            raise ModelError(describe(f"no coordinate {name!r}", where=mechanism.name, allowed=allowed))
    return frozenset(found)
