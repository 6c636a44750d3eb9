"""Allowed collision matrices: pairs of robot parts that may touch, with reasons, saved as SRDF for MoveIt."""

import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.checks import whole_number
from torsor.base.errors import ModelError, listing
from torsor.formats.writing import write_file
from torsor.formats.xml import add_element, parse_xml, xml_bytes
from torsor.geometry.distances import DistanceModel
from torsor.geometry.placed import Placed, placed_shapes
from torsor.mechanism import Mechanism
from torsor.mechanism.mechanism import lineage

Pair = tuple[str, str]
SUFFIX = ".srdf"


def _key(a: str, b: str) -> Pair:
    return (a, b) if a <= b else (b, a)


@dataclass(frozen=True, eq=False)
class AllowedCollisions:
    """An allowed collision matrix: pairs of robot ``parts`` that are not checked, each with a reason.

    A part is a link of the description with shapes. The reasons are those of MoveIt: "adjacent" (a joint connects the
    parts), "never" or "always" (they never or always overlap in sampled postures), "excluded" (by the file), "user" (by
    the user), or any other word. The matrix is immutable: ``allow`` and ``check`` return a new matrix.

    Example:
        >>> matrix = AllowedCollisions("arm", ("base", "arm", "hand"), {("base", "arm"): "adjacent"})
        >>> edited = matrix.allow("base", "hand", "user").check("arm", "base")
        >>> edited.reason("hand", "base"), edited.reason("base", "arm")
        ('user', None)
    """

    robot: str
    parts: tuple[str, ...]
    reasons: Mapping[Pair, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pair in self.reasons:
            self._checked(*pair)
        table = {_key(*pair): str(reason) for pair, reason in self.reasons.items()}
        object.__setattr__(self, "reasons", MappingProxyType(dict(sorted(table.items()))))

    def __reduce__(self) -> tuple[object, ...]:
        return AllowedCollisions, (self.robot, self.parts, dict(self.reasons))

    def _checked(self, a: str, b: str) -> Pair:
        for name in (a, b):
            if name not in self.parts:
                allowed = listing(map(repr, self.parts), like=repr(name))
                raise ModelError(f"no part {name!r} with shapes", value=name, where=self.robot, allowed=allowed)
        if a == b:
            raise ModelError(f"{a!r} cannot collide with itself", value=a, where=self.robot, allowed="two parts")
        return _key(a, b)

    def __str__(self) -> str:
        lines = [f"{a} - {b}: {reason}" for (a, b), reason in self.reasons.items()]
        return "\n".join([f"{self.robot}: {len(lines)} pairs of {len(self.parts)} parts may touch", *lines])

    def reason(self, a: str, b: str) -> str | None:
        """Return the reason why two parts may touch, or None if the pair is checked."""
        return self.reasons.get(self._checked(a, b))

    def allow(self, a: str, b: str, reason: str = "user") -> "AllowedCollisions":
        """Return a matrix in which two parts may touch."""
        return replace(self, reasons={**self.reasons, self._checked(a, b): reason})

    def check(self, a: str, b: str) -> "AllowedCollisions":
        """Return a matrix in which the distance between two parts is checked."""
        pair = self._checked(a, b)
        return replace(self, reasons={key: reason for key, reason in self.reasons.items() if key != pair})

    def matrix(self) -> NDArray[np.bool_]:
        """Return the matrix (parts, parts), which is True where two parts may touch and on its diagonal.

        Example:
            >>> AllowedCollisions("arm", ("base", "arm"), {("base", "arm"): "adjacent"}).matrix().all()
            np.True_
        """
        result, number = np.eye(len(self.parts), dtype=bool), {name: k for k, name in enumerate(self.parts)}
        for a, b in self.reasons:
            result[number[a], number[b]] = result[number[b], number[a]] = True
        return result

    def save(self, path: str | Path) -> None:
        """Write the pairs to an SRDF file (.srdf) as <disable_collisions>, with MoveIt's capitalised reasons."""
        root = ET.Element("robot", {"name": self.robot})
        for (a, b), reason in self.reasons.items():
            add_element(root, "disable_collisions", link1=a, link2=b, reason=reason.capitalize())
        write_file(path, (SUFFIX,), lambda: xml_bytes(root, Path(path).name))


def read_srdf(path: str | Path) -> list[tuple[str, str, str]]:
    """Return (link, link, reason) for each <disable_collisions> element in an SRDF file; other elements are ignored.

    Example:
        >>> import tempfile
        >>> matrix = AllowedCollisions("arm", ("base", "arm"), {("base", "arm"): "adjacent"})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     matrix.save(folder + "/arm.srdf")
        ...     read_srdf(folder + "/arm.srdf")
        [('arm', 'base', 'adjacent')]
    """
    if not isinstance(path, (str, Path)):
        allowed = "an allowed collision matrix, a list of (link, link, reason), or the path of an .srdf file"
        raise ModelError(f"allowed collisions are {path!r}", value=path, allowed=allowed)
    path = Path(path)
    if path.suffix.lower() != SUFFIX:
        fix = f"name it {path.stem}{SUFFIX}"
        raise ModelError(f"the suffix is {path.suffix!r}", value=path.suffix, where=path.name, allowed=SUFFIX, fix=fix)
    if not path.is_file():
        raise ModelError("it is a folder" if path.is_dir() else "no such file", where=str(path), allowed=SUFFIX)
    root = parse_xml(path)
    if root.tag != "robot":
        raise ModelError(f"the root element is <{root.tag}>", where=path.name, allowed="<robot>")
    result = []
    for element in root.findall("disable_collisions"):
        a, b = element.get("link1"), element.get("link2")
        if not a or not b:
            where = f"{path.name}: line {getattr(element, 'line', 0)}"
            raise ModelError("<disable_collisions> needs link1 and link2", where=where)
        result.append((a, b, (element.get("reason") or "user").lower()))
    return result


def matrix_of(robot: str, parts: Iterable[str], pairs: Iterable[tuple[str, str, str]]) -> AllowedCollisions:
    """Return the matrix of (part, part, reason) pairs, without parts that have no shapes."""
    known = tuple(dict.fromkeys(parts))
    return AllowedCollisions(robot, known, {(a, b): why for a, b, why in pairs if a in known and b in known})


# Parts of a robot that may touch by default: those that a joint connects, and those that always or never overlap.

CHUNK = 50  # number of postures after which pairs that were both apart and overlapping are no longer sampled
SAMPLING_RANGE = {True: np.pi, False: 1.0}  # rad or m: sampling range of coordinates without limits


def default_matrix(robot: Mechanism, samples: int = 1000, seed: int = 0) -> AllowedCollisions:
    """Return the allowed collision matrix of a robot; see ``robot.shapes.allowed``."""
    count, shapes = whole_number(samples, robot.name, "samples", least=0), placed_shapes(robot)
    start = whole_number(seed, robot.name, "seed", least=0)
    allowed = list(robot.allowed_collisions) + [(*pair, "adjacent") for pair in _adjacent(robot, shapes)]
    parts = (shape.part for shape in shapes)
    matrix = matrix_of(robot.name, parts, reversed(allowed))  # reasons from the file take precedence
    result = _sampled(robot, shapes, shape_pairs(shapes, matrix), count, np.random.default_rng(start)) if count else []
    return matrix_of(robot.name, matrix.parts, [*((*pair, why) for pair, why in matrix.reasons.items()), *result])


_GROUND = ("plane", "height field")


def shape_pairs(shapes: Sequence[Placed], matrix: AllowedCollisions) -> list[tuple[int, int]]:
    """Return the pairs of shape indices to check: on different links, with matching masks, and not allowed to touch."""
    return [
        (i, j)
        for i, a in enumerate(shapes)
        for j, b in enumerate(shapes[i + 1 :], start=i + 1)
        if a.link != b.link
        and not a.shape.shape == b.shape.shape == "plane"
        and "height field" not in (a.shape.shape, b.shape.shape)
        and a.shape.may_touch(b.shape)
        and (a.part == b.part or matrix.reason(a.part, b.part) is None)
    ]


def _adjacent(robot: Mechanism, shapes: Sequence[Placed]) -> Iterable[Pair]:
    """Yield the pairs of parts whose links are connected by a joint, except by free joints and with base planes.

    A chain of links without shapes or mass between two parts is treated as one joint with several axes.
    """
    solid = {item.link for item in shapes} | {k for k, link in enumerate(robot.links) if link.mass > 0} | {-1}
    by_link = defaultdict[int, list[Placed]](list)
    for shape in shapes:
        by_link[shape.link].append(shape)
    for index, joint in enumerate(robot.joints):
        free, parent = joint.type == "free", robot.parents[index]
        while parent not in solid:
            free, parent = free or robot.joints[parent].type == "free", robot.parents[parent]
        for a in by_link[index] if not free else ():
            yield from ((a.part, b.part) for b in by_link[parent] if b.shape.shape not in _GROUND and a.part != b.part)


def _sampled(
    robot: Mechanism, shapes: Sequence[Placed], pairs: Sequence[tuple[int, int]], samples: int, rng: np.random.Generator
) -> list[tuple[str, str, str]]:
    """Return the pairs of parts that never or always overlap in random postures within the limits."""
    pairs = [pair for pair in pairs if not _unbounded(robot, *(shapes[index].link for index in pair))]
    if not pairs:
        return []
    model = DistanceModel(robot, shapes, pairs, within=0.0)
    names = [(shapes[a].part, shapes[b].part) for a, b in pairs]
    group = {name: k for k, name in enumerate(dict.fromkeys(names))}
    of_pair = np.array([group[name] for name in names])
    touched, apart = np.zeros((2, len(group)), dtype=bool)
    for start in range(0, samples, CHUNK):
        among = ~(touched & apart)[of_pair]
        if not among.any():
            break
        overlap = model(random_postures(robot, min(CHUNK, samples - start), rng), among=among).distance < 0
        together = np.zeros((len(overlap), len(group)), dtype=bool)
        for column, k in enumerate(of_pair.tolist()):
            together[:, k] |= overlap[:, column]
        touched |= together.any(axis=0)
        apart |= (~together).any(axis=0)
    return [(*name, "always" if touched[k] else "never") for name, k in group.items() if not (touched[k] and apart[k])]


def _unbounded(robot: Mechanism, a: int, b: int) -> bool:
    """Return whether two links can move arbitrarily far apart, which makes samples meaningless."""
    between = set(lineage(robot, a)) ^ set(lineage(robot, b))
    for joint in (robot.joints[index] for index in between):
        limits = np.concatenate([np.atleast_1d(joint.lower), np.atleast_1d(joint.upper)])
        if joint.type in ("free", "planar") or (joint.type == "prismatic" and not np.isfinite(limits).all()):
            return True
    return False


def random_postures(robot: Mechanism, count: int, rng: np.random.Generator) -> Array:
    """Return random postures (count, nq), uniform within limits or, without limits, within ± half a turn or 1 m.

    Quaternions are uniform over all rotations.
    """
    wide = np.full(robot.nq, 1.0)
    for joint, slices in zip(robot.joints, robot.coordinates, strict=True):
        if joint.nq == joint.nv:
            wide[slices.q] = [SAMPLING_RANGE[bool(turns)] for turns in joint.kind.turns]
    low = np.where(np.isfinite(robot.lower), robot.lower, -wide)
    high = np.where(np.isfinite(robot.upper), robot.upper, np.maximum(wide, low))
    q = rng.uniform(np.minimum(low, high), high, size=(count, robot.nq))
    for joint, slices in zip(robot.joints, robot.coordinates, strict=True):
        if joint.nq > joint.nv:  # the last four positions are a quaternion
            quaternions = rng.normal(size=(count, 4))
            q[:, slices.q.stop - 4 : slices.q.stop] = quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
    return q
