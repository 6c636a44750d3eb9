"""A body or a skeleton with markers, ready to be fitted: its variables, their bounds, the numbers of its geometry."""

from collections.abc import Mapping

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import flag, indices_of, number, table
from torsor.base.errors import ModelError, describe
from torsor.human.measured.fitting import Fit
from torsor.human.measured.marker_set import MarkerSet
from torsor.human.measured.normal_equations import Layout
from torsor.human.measured.skeleton import Skeleton
from torsor.mechanism import Mechanism
from torsor.mechanism.curves import Curve
from torsor.robot.robot import Robot

WHERE = "inverse kinematics"

# Joints of the spine that bend alike: markers on the shoulders tell the bend of the spine, not how it is shared.
SPINE = {f"spine{k}_{way}": f"spine1_{way}" for k in (2, 3, 4) for way in ("flexion", "lateral", "axial")}


def prepared(
    body: Robot | Skeleton,
    markers: MarkerSet,
    posture: Array | None = None,
    frozen: Mapping[str, float] | None = None,
    tied: Mapping[str, str] | None = None,
    *,
    ranges: bool = True,
) -> Fit:
    """Return the fit of a body with markers; ``posture`` are the values of its coordinates to start from."""
    names = list(body.coordinate_names)
    fixed = {name: number(value, WHERE, f"frozen {name}") for name, value in table(frozen, WHERE, "frozen").items()}
    indices_of(list(fixed), names, f"{WHERE}: frozen")
    flag(ranges, WHERE, "ranges")
    if isinstance(body, Skeleton):
        return _of_skeleton(body, markers, posture, fixed, tied, ranges)
    if body.nq != body.nv or body.loops:
        found = f"{body.name!r} has loops or joints with more positions than velocities"
        raise ModelError(describe(found, where=WHERE, allowed="a tree of hinges and slides"))
    ties = dict(table(tied, WHERE, "tied")) if tied is not None else {a: b for a, b in SPINE.items() if a in names}
    indices_of([*ties, *ties.values()], names, f"{WHERE}: tied")
    links = markers.links(body)
    carried = carried_by(body, links)
    values = np.zeros(body.nq) if posture is None else posture.copy()
    for name, value in fixed.items():
        values[names.index(name)] = value
    leaders = {name: ties.get(name, name) for name in names}
    variables, number_of = list[int](), dict[str, int]()
    for k, name in enumerate(names):
        leader = leaders[name]
        if leaders[leader] != leader:
            found = f"{name} is tied to {leader}, which is tied to {leaders[leader]}"
            raise ModelError(describe(found, where=WHERE, fix="tie both to the same coordinate"))
        if name in fixed or leader in fixed or k not in carried:
            variables.append(-1)
            continue
        variables.append(number_of.setdefault(leader, len(number_of)))
    _check_open(number_of)
    held = tuple(0.0 if variable >= 0 else float(value) for variable, value in zip(variables, values, strict=True))
    factors = tuple(1.0 if variable >= 0 else 0.0 for variable in variables)
    layout = Layout(links, tuple(variables), factors, held)
    lower, upper, standing = np.full(layout.count, -np.inf), np.full(layout.count, np.inf), np.zeros(layout.count)
    for k, variable in reversed(list(enumerate(variables))):
        if variable >= 0:
            standing[variable] = values[k]
            if ranges:
                lower[variable] = max(lower[variable], body.lower[k])
                upper[variable] = min(upper[variable], body.upper[k])
    offsets = np.array([joint.placement[:3, 3] for joint in body.joints])
    return Fit(body, layout, offsets, markers.local, lower, upper, standing)


def _of_skeleton(
    body: Skeleton,
    markers: MarkerSet,
    posture: Array | None,
    fixed: dict[str, float],
    tied: Mapping[str, str] | None,
    ranges: bool,
) -> Fit:
    """Return the fit of a skeleton: its variables are the coordinates that move markers and follow no other."""
    if tied:
        fix = "the couplings of the .osim file tie coordinates"
        raise ModelError(describe("tied is given for a skeleton", where=WHERE, allowed="bodies alone", fix=fix))
    for name in fixed:
        if name in body.couplings:
            text, fix = f"frozen {name} follows {body.couplings[name][0]}", f"freeze {body.couplings[name][0]}"
            raise ModelError(describe(text, where=WHERE, fix=fix))
    values = _start(body, posture) | fixed
    links = markers.links(body.tree)
    carried = carried_by(body.tree, links)
    variables, curves, held, number_of = list[int](), list[tuple[Curve, ...]](), list[float](), dict[str, int]()
    for k, name in enumerate(body.tree.coordinate_names):
        coordinate, function = body.functions[name]
        leader, coupling = body.couplings.get(coordinate, (coordinate, None))
        chain = (function,) if coupling is None else (coupling, function)
        still = function.line is not None and function.line[0] == 0.0
        if leader in fixed or k not in carried or still or body.coordinates[leader].locked:
            variables.append(-1)
            x = np.array([values[leader]])
            for curve in chain:
                x = curve(x)[0]
            held.append(float(x[0]))
            curves.append(())
        else:
            variables.append(number_of.setdefault(leader, len(number_of)))
            curves.append(chain)
            held.append(0.0)
    _check_open(number_of)
    factors = tuple(1.0 if variable >= 0 else 0.0 for variable in variables)
    layout = Layout(links, tuple(variables), factors, tuple(held), tuple(curves))
    known = [body.coordinates[name] for name in number_of]
    lower = np.array([each.lower if ranges and each.clamped else -np.inf for each in known])
    upper = np.array([each.upper if ranges and each.clamped else np.inf for each in known])
    standing = np.array([values[name] for name in number_of])
    offsets = np.array([joint.placement[:3, 3] for joint in body.tree.joints])
    return Fit(body.tree, layout, offsets, markers.local, lower, upper, standing)


def coordinates_of(
    body: Robot | Skeleton, fit: Fit, y: Array, posture: Array | None = None, frozen: Mapping[str, float] | None = None
) -> Array:
    """Return the coordinates (K, n) of a body from the variables of its fit (K, n) and what it was made of."""
    if isinstance(body, Robot):
        return fit.layout.positions(y)
    values = _start(body, posture) | dict(frozen or {})
    found = np.tile([values[name] for name in body.names], (len(y), 1))
    for name, variable in zip(body.tree.coordinate_names, fit.layout.variables, strict=True):
        coordinate = body.functions[name][0]
        leader = body.couplings.get(coordinate, (coordinate, None))[0]
        if variable >= 0:
            found[:, body.names.index(leader)] = y[:, variable]
    return body.completed(found)


def _start(body: Skeleton, posture: Array | None) -> dict[str, float]:
    """Return the values of the coordinates that a fit starts from: those given, or the defaults of the file."""
    if posture is not None:
        return dict(zip(body.names, posture.tolist(), strict=True))
    return {name: body.coordinates[name].default for name in body.names}


def _check_open(variables: dict[str, int]) -> None:
    if not variables:
        raise ModelError(describe("no coordinate is left to be found", where=WHERE, fix="freeze fewer coordinates"))


def carried_by(body: Mechanism, links: tuple[int, ...]) -> set[int]:
    """Return the indices of the coordinates that move markers on links."""
    found = set[int]()
    for link in set(links):
        while link >= 0:
            found |= set(range(body.coordinates[link].v.start, body.coordinates[link].v.stop))
            link = body.parents[link]
    return found
