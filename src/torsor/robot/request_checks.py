"""What a request may ask for: axes, points, rows, coordinates by name."""

from collections.abc import Iterable, Sequence

from torsor.base.checks import flag, one_of
from torsor.base.errors import ModelError, listing
from torsor.dynamics import Algorithm, Request
from torsor.dynamics.recursions.places import AXES
from torsor.dynamics.requests import ROWS
from torsor.mechanism import Mechanism


def check_axes(algorithm: Algorithm, request: Request, where: str) -> None:
    """Raise ModelError for axes, a point or rows that an algorithm does not have."""
    one_of(request.axes, AXES if algorithm.in_axes else ("local",), f"{where}: {request.name}", "axes")
    one_of(request.rows, tuple(ROWS) if algorithm.by_rows else ("all",), where, f"rows of {request.name}")
    flag(request.point, where, f"point of {request.name}")
    if request.point and not algorithm.at_point:
        raise ModelError(f"{request.name} takes no point", where=where)
    if request.point and request.axes == "world":
        found = f"{request.name} with `axes='world'` and a point: the twist at the base's origin is that of all points"
        raise ModelError(found, where=where, fix="leave the point out, or use `axes='aligned'`")


def coordinate_indices(mechanism: Mechanism, names: Sequence[str]) -> frozenset[int]:
    """Return the indices of coordinates; the name of a joint stands for all of its coordinates."""
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Iterable):
        raise ModelError(f"forced is {names!r}", value=names, where=mechanism.name, allowed="names of coordinates")
    of_joints = {joint.name: slices.v for joint, slices in zip(mechanism.joints, mechanism.coordinates, strict=True)}
    found, coordinates = set[int](), mechanism.coordinate_names
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"forced has {name!r}", value=name, where=mechanism.name, allowed="names of coordinates")
        if name in coordinates:
            found.add(coordinates.index(name))
        elif name in of_joints:
            found.update(range(of_joints[name].start, of_joints[name].stop))
        else:
            allowed = listing(coordinates, like=name)
            raise ModelError(f"no coordinate {name!r}", value=name, where=mechanism.name, allowed=allowed)
    return frozenset(found)
