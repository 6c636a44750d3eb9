"""The allowed collision matrix: which parts of a robot may touch, and why. It is saved as SRDF, which MoveIt reads."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from torsor.base.errors import ModelError, describe, listing
from torsor.formats.writing import write_file
from torsor.formats.xml import add_element, parse_xml, xml_bytes

Pair = tuple[str, str]
SUFFIX = ".srdf"


def _key(a: str, b: str) -> Pair:
    return (a, b) if a <= b else (b, a)


@dataclass(frozen=True, eq=False)
class AllowedCollisions:
    """An allowed collision matrix: pairs of ``parts`` of a robot that are not checked, each with its reason.

    A part is a link of the description with shapes. Reasons are those of MoveIt: "adjacent" (a joint connects both),
    "never" and "always" (they never or always overlapped in sampled postures); "excluded" (by the file), "user" (by
    you), or any other word. The matrix does not change: ``allow`` and ``check`` return another one.

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
                raise ModelError(describe(f"no part {name!r} with shapes", where=self.robot, allowed=allowed))
        if a == b:
            raise ModelError(describe(f"{a!r} with itself", where=self.robot, allowed="two parts"))
        return _key(a, b)

    def __str__(self) -> str:
        lines = [f"{a} - {b}: {reason}" for (a, b), reason in self.reasons.items()]
        return "\n".join([f"{self.robot}: {len(lines)} pairs of {len(self.parts)} parts may touch", *lines])

    def reason(self, a: str, b: str) -> str | None:
        """Return why two parts may touch; None if the pair is checked."""
        return self.reasons.get(self._checked(a, b))

    def allow(self, a: str, b: str, reason: str = "user") -> "AllowedCollisions":
        """Return the matrix in which two parts may touch."""
        return replace(self, reasons={**self.reasons, self._checked(a, b): reason})

    def check(self, a: str, b: str) -> "AllowedCollisions":
        """Return the matrix in which the distance of two parts is checked."""
        pair = self._checked(a, b)
        return replace(self, reasons={key: reason for key, reason in self.reasons.items() if key != pair})

    def matrix(self) -> NDArray[np.bool_]:
        """Return the matrix (parts, parts): True where two parts may touch, and on its diagonal.

        Example:
            >>> AllowedCollisions("arm", ("base", "arm"), {("base", "arm"): "adjacent"}).matrix().all()
            np.True_
        """
        found, number = np.eye(len(self.parts), dtype=bool), {name: k for k, name in enumerate(self.parts)}
        for a, b in self.reasons:
            found[number[a], number[b]] = found[number[b], number[a]] = True
        return found

    def save(self, path: str | Path) -> None:
        """Write the pairs as <disable_collisions> of an SRDF file (.srdf); reasons have MoveIt's capital letters."""
        root = ET.Element("robot", {"name": self.robot})
        for (a, b), reason in self.reasons.items():
            add_element(root, "disable_collisions", link1=a, link2=b, reason=reason.capitalize())
        write_file(path, (SUFFIX,), lambda: xml_bytes(root, Path(path).name))


def _srdf(path: str | Path) -> Path:
    if not isinstance(path, (str, Path)):
        allowed = "an allowed collision matrix, (link, link, reason) each, or the path of an .srdf file"
        raise ModelError(describe(f"allowed collisions are {path!r}", allowed=allowed))
    path = Path(path)
    if path.suffix.lower() != SUFFIX:
        fix = f"name it {path.stem}{SUFFIX}"
        raise ModelError(describe(f"the suffix is {path.suffix!r}", where=path.name, allowed=SUFFIX, fix=fix))
    return path


def read_srdf(path: str | Path) -> list[tuple[str, str, str]]:
    """Return (link, link, reason) of each <disable_collisions> of an SRDF file: the rest of it is not read.

    Example:
        >>> import tempfile
        >>> matrix = AllowedCollisions("arm", ("base", "arm"), {("base", "arm"): "adjacent"})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     matrix.save(folder + "/arm.srdf")
        ...     read_srdf(folder + "/arm.srdf")
        [('arm', 'base', 'adjacent')]
    """
    path = _srdf(path)
    if not path.is_file():
        raise ModelError(describe("a folder" if path.is_dir() else "no such file", where=str(path), allowed=SUFFIX))
    root = parse_xml(path)
    if root.tag != "robot":
        raise ModelError(describe(f"root element <{root.tag}>", where=path.name, allowed="<robot>"))
    found = []
    for element in root.findall("disable_collisions"):
        a, b = element.get("link1"), element.get("link2")
        if not a or not b:
            where = f"{path.name}: line {getattr(element, 'line', 0)}"
            raise ModelError(describe("<disable_collisions> without link1 and link2", where=where))
        found.append((a, b, (element.get("reason") or "user").lower()))
    return found


def matrix_of(robot: str, parts: Iterable[str], pairs: Iterable[tuple[str, str, str]]) -> AllowedCollisions:
    """Return the matrix of pairs with reasons, without those of parts that have no shapes.

    Example:
        >>> matrix_of("arm", ("base", "arm"), [("base", "arm", "never"), ("base", "camera", "never")]).reasons
        mappingproxy({('arm', 'base'): 'never'})
    """
    known = tuple(dict.fromkeys(parts))
    return AllowedCollisions(robot, known, {(a, b): why for a, b, why in pairs if a in known and b in known})
