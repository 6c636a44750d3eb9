"""TOML, Torsor's own format: short when written by hand, exact when written by ``write_toml``. See docs/toml.md."""

import json
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.errors import warn
from torsor.formats.toml_schema import EACH, ONCE, UNITS, Table, checked, entries, error, one_of, some
from torsor.formats.xml_writing import put
from torsor.mechanism import (
    KINDS,
    Coupling,
    Frame,
    Joint,
    JointKind,
    Link,
    Loop,
    Mechanism,
    Motor,
    Spring,
    Visual,
    assemble,
)
from torsor.mechanism.loops import Closure
from torsor.mechanism.parts import VISUAL_SIZES
from torsor.mechanism.values import ROTATION_TOLERANCE
from torsor.spatial import from_rpy, make_pose, to_rpy

__all__ = ["read_toml", "write_toml"]

Array = NDArray[np.float64]
VERSION = 1
LARGEST_FILE = 64_000_000  # bytes; published robots need less than a hundredth of it


def read_toml(path: Path, base: str = "fixed", strict: bool = True) -> Mechanism:
    r"""Return the mechanism of a TOML file; the format is described in docs/toml.md.

    ``base="floating"`` puts a free joint under the root. With ``strict=False`` an inertia that no body can have is a
    warning instead of an error.

    Example:
        >>> import tempfile
        >>> text = 'torsor = 1\nunits.angle = "deg"\nlinks = [{ name = "ground", mass = 2.5 }]'
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "block.toml").write_text(text)
        ...     read_toml(Path(folder, "block.toml")).base.mass
        2.5
    """
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise error(path.name, "the file is too large", f"{LARGEST_FILE // 10**6} MB", "check the path")
    return _Reader(path.name, strict).read(content, path.stem, base)


def write_toml(mechanism: Mechanism, path: str | Path) -> None:
    """Write a mechanism as TOML, all at once: a write that fails leaves what was there before.

    The text is read back before it is put in place, so that there is no file that does not give an equal mechanism.

    Example:
        >>> import tempfile
        >>> robot = assemble("block", [Link("ground", mass=2.5)], [])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_toml(robot, folder + "/block.toml")
        ...     read_toml(Path(folder, "block.toml")) == robot
        True
    """
    put(path, (".toml",), lambda: _content(mechanism))


def _content(mechanism: Mechanism) -> bytes:
    """Return the file's bytes, checked by reading them: a mechanism that ``assemble`` did not make may not fit."""
    blocks = (head + "".join(f"{k} = {_text(v)}\n" for k, v in table.items()) for head, table in _tables(mechanism))
    content = "\n".join(blocks).encode(errors="replace")  # half a surrogate pair will not read back equal
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whoever made the mechanism was warned then
        plain = Mechanism(**{each.name: getattr(mechanism, each.name) for each in fields(Mechanism)})
        if _Reader(f"{mechanism.name!r} as TOML", strict=False).read(content, "", "fixed") != plain:
            raise error(f"{mechanism.name!r} as TOML", "would not read back equal", fix="check names and visuals")
    return content


class _Reader:
    """One file being read: its name for messages, whether its angles are degrees and unphysical inertias are errors."""

    def __init__(self, source: str, strict: bool) -> None:
        self.source, self.strict, self.degrees = source, strict, False

    def read(self, content: bytes, name: str, base: str) -> Mechanism:
        """Return the mechanism of a file's content; ``name`` is for one that states none."""
        try:
            data = tomllib.loads(content.decode("utf-8-sig"))  # some editors begin a file with the mark of UTF-8
            repr(data)  # whole numbers too long to be shown, in hexadecimal, fail here and not in a message about them
        except (ValueError, RecursionError) as wrong:
            raise error(self.source, f"not valid TOML: {wrong}", fix="correct it, and save it as UTF-8") from None
        if short(data.get("torsor")) != str(VERSION):  # compared as text, because 1.0 and true are equal to 1
            what = f"format version {short(data['torsor'])}" if "torsor" in data else "no format version"
            raise error(self.source, what, f"torsor = {VERSION}", "write it at the top, or use another Torsor")
        data = checked("file", {"name": name} | data, self.source)
        for key, unit in checked("units", data["units"], f"{self.source}: [units]").items():
            one_of(UNITS[key], unit, f"unit of {key}", f"{self.source}: [units]")
        self.degrees = data["units"]["angle"] == "deg"
        links = [self._link(*entry) for entry in entries("link", data, self.source)]
        joints = [self._joint(*entry) for entry in entries("joint", data, self.source)]
        frames = [Frame(e["name"], e["link"], self._pose(at, e)) for at, e in entries("frame", data, self.source)]
        return assemble(
            data["name"],
            links,
            joints,
            frames,
            source=self.source,
            base=base,
            loops=list(self._loops(data)),
            **some(data, "gravity", "active"),
        )

    def _loops(self, data: Table) -> Iterator[Closure]:
        for _, entry in entries("loop", data, self.source):
            settings: Table = {key: float(value) if key == "length" else value for key, value in entry.items()}
            yield Loop(**settings, source=self.source)
        for _, entry in entries("coupling", data, self.source):
            yield Coupling(entry["name"], entry["shares"], float(entry.get("offset", 0.0)), self.source)

    def _pose(self, where: str, entry: Table) -> Array:
        rpy, R = entry.get("rpy", np.zeros(3)), entry.get("rotation")
        if "rpy" in entry and R is not None:
            raise error(where, "both rpy and rotation", "one of them", "remove one")
        if not self.degrees and np.abs(rpy).max() > 2 * np.pi:
            what, fix = f"rpy is {rpy.tolist()} rad, more than a turn", 'write angle = "deg" under [units]'
            raise error(where, what, "angles in radians", fix)
        if R is None:
            R = from_rpy(np.radians(rpy) if self.degrees else rpy)
        elif np.abs(R @ R.T - np.eye(3)).max() > ROTATION_TOLERANCE or np.linalg.det(R) < 0:
            raise error(where, f"rotation is {R.tolist()}", "a right-handed rotation matrix", "write 8 digits or more")
        return make_pose(R, entry.get("position"))

    def _link(self, where: str, entry: Table) -> Link:
        inertia = entry.get("inertia", np.zeros(6))
        inertia = inertia[[[0, 3, 4], [3, 1, 5], [4, 5, 2]]] if inertia.ndim == 1 else inertia
        visuals = tuple(self._visual(*visual) for visual in entries("visual", entry, where))
        settings = some(entry, "name", "mass", "com")
        known = entry.get("unphysical", False)  # whoever wrote the file knows that no body has this inertia
        strict = self.strict and not known
        link = Link(inertia=inertia, visuals=visuals, strict=strict, source=self.source, **settings)
        if link.defect and not known:
            warn(link.defect)
        return link

    def _visual(self, where: str, entry: Table) -> Visual:
        shape = one_of(VISUAL_SIZES, entry["shape"], "shape", where)
        size = tuple(entry.get("size", np.ones(3 if shape == "mesh" else 0)).tolist())
        if len(size) != VISUAL_SIZES[shape]:
            raise error(where, f"size has {len(size)} numbers", f"{VISUAL_SIZES[shape]} for a {shape}")
        color = tuple(entry["color"].tolist()) if "color" in entry else None
        return Visual(shape, size, self._pose(where, entry), color, **some(entry, "mesh", "path", "name"))

    def _joint(self, where: str, entry: Table) -> Joint:
        kind = KINDS[one_of(KINDS, entry["type"], "type", where)]
        settings = some(entry, "name", "type", "parent", "child", *ONCE) | {"coordinate": entry.get("follows", "")}
        if self.degrees and "offset" in entry and kind.turns == (True,):
            settings["offset"] = np.radians(entry["offset"])
        settings |= {key: self._each(where, key, entry, kind) for key in EACH if key in entry}
        if "spring" in entry:
            spring = checked("spring", entry["spring"], f"{where}: spring")
            if self.degrees and "rest" in spring and kind.turns == (True,):
                spring["rest"] = np.radians(spring["rest"])
            settings["spring"] = Spring(**spring, source=f"{where}: spring")
        if "motor" in entry:
            motor = checked("motor", entry["motor"], f"{where}: motor")
            settings["motor"] = Motor(**motor, source=f"{where}: motor")
        return Joint(placement=self._pose(where, entry), source=self.source, **settings)

    def _each(self, where: str, key: str, entry: Table, kind: JointKind) -> Array:
        """Return what a joint has for each position or velocity, angles in radians."""
        values, turning = entry[key], _turning(key, kind)
        if values.ndim and values.shape != turning.shape:
            raise error(where, f"{key} has {len(values)} numbers", f"a number, or a row of {len(turning)}")
        values = np.broadcast_to(values, turning.shape)
        if not (self.degrees or entry.get("multi_turn")) and _like_degrees(key, values, kind):
            fix = 'write angle = "deg" under [units], or multi_turn = true in this joint if radians are meant'
            raise error(where, f"{key} is {values.tolist()} rad, which looks like degrees", "radians", fix)
        return np.where(turning, np.radians(values), values) if self.degrees else values


def _turning(key: str, kind: JointKind) -> NDArray[np.bool_]:
    """Return which of the numbers under a joint's key are angles or their rates; quaternions are not."""
    count = kind.nq if key in ("lower", "upper") else kind.nv
    angular = key in ("lower", "upper", "velocity_limit") and count == kind.nv
    return np.array(kind.turns if angular else [False] * count, dtype=bool)


def _like_degrees(key: str, values: Array, kind: JointKind) -> bool:
    """Whether position limits are 90, 170, 360...: beyond a turn in radians, and as round as only degrees are."""
    angles = values[_turning(key, kind) & np.isfinite(values)] if key in ("lower", "upper") else np.zeros(0)
    return bool(((abs(angles) > 2 * np.pi) & (angles % 5 == 0)).any())


def _tables(mechanism: Mechanism) -> Iterator[tuple[str, Table]]:
    """Give the tables of the file, in order, each after its header."""
    head: Table = {"torsor": VERSION, "name": mechanism.name, "gravity": mechanism.gravity}
    yield "", head | ({"active": mechanism.active} if mechanism.active else {})
    yield "[units]\n", {"angle": "rad", "length": "m", "mass": "kg"}
    for link in (mechanism.base, *mechanism.links):
        symmetric = np.array_equal(link.inertia, link.inertia.T)  # or it is so but for rounding, which six would lose
        inertia = link.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]] if symmetric else link.inertia
        known = {"unphysical": True} if link.defect else {}
        yield "[[links]]\n", {"name": link.name, **_unless(0.0, mass=link.mass, com=link.com, inertia=inertia)} | known
        for look in link.visuals:
            table: Table = {"shape": look.shape, "size": look.size} | _place(look.pose) | _unless("", name=look.name)
            yield "[[links.visuals]]\n", table | _unless(None, color=look.color, mesh=look.mesh, path=look.path)
    for joint in mechanism.joints:
        table = {key: getattr(joint, key) for key in ("name", "type", "parent", "child")} | _place(joint.placement)
        table |= _unless(joint.name, follows=joint.coordinate)
        for key, default in (ONCE | EACH).items():
            values = getattr(joint, key)
            if np.any(values != default):  # where there is one for each and all are the same, one stands for all
                table[key] = values[0] if key in EACH and (values == values[0]).all() else values
            if _like_degrees(key, values, joint.kind):
                table["multi_turn"] = True
        yield "[[joints]]\n", table
        if joint.spring is not None:
            yield "[joints.spring]\n", _part(joint.spring, damping=0.0, rest=0.0)
        if joint.motor is not None:
            plain = {"ratio": 1.0, "axis": (0.0, 0.0, 1.0), "stiffness": None}
            yield "[joints.motor]\n", _part(joint.motor, **plain, damping=0.0, coulomb=0.0, viscous=0.0, smooth=0.0)
    for frame in mechanism.frames:
        yield "[[frames]]\n", {"name": frame.name, "link": frame.link, **_place(frame.pose)}
    for loop in mechanism.loops:
        if isinstance(loop, Coupling):
            yield "[[couplings]]\n", {"name": loop.name, "shares": loop.shares, **_unless(0.0, offset=loop.offset)}
        else:
            ends = {"name": loop.name, "a": loop.a, "b": loop.b, "kind": loop.kind}
            yield "[[loops]]\n", ends | _unless(0.0, length=loop.length)


def _text(value: Any) -> str:
    """Return a value as TOML: numbers with the fewest digits that read back the same, matrices a row on each line."""
    if isinstance(value, (str, bool)):  # as in JSON, but for the character 7F, which TOML wants escaped too
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_text(key)} = {_text(each)}" for key, each in value.items()) + " }"
    if isinstance(value, (list, tuple)) or np.ndim(value):  # rows may differ in length
        rows = any(isinstance(each, (list, tuple, np.ndarray)) for each in value)
        return "[\n" + "".join(f"  {_text(row)},\n" for row in value) + "]" if rows else _line(value)
    return repr(float(value)).removesuffix(".0")


def _line(values: Any) -> str:
    return f"[{', '.join(map(_text, values))}]"


def _part(part: Spring | Motor, **defaults: Any) -> Table:
    """Return the numbers and names of a part, but for those that are what the reader takes where there is none."""
    values = {each.name: getattr(part, each.name) for each in fields(part) if each.compare}
    return {key: value for key, value in values.items() if key not in defaults or np.any(value != defaults[key])}


def _unless(default: Any, **values: Any) -> Table:
    return {key: value for key, value in values.items() if np.any(value != default)}


def _place(T: Array) -> Table:
    """Return a pose as position and rpy, or as position and rotation where no angles give the same bits."""
    R, place = T[:3, :3], _unless(0.0, position=T[:3, 3])
    for digits in (6, 10, 14, 15, 30):  # what was written as 0.3 comes back as 0.30000000000000004
        rpy = np.array([round(float(angle), digits) + 0.0 for angle in to_rpy(R)])
        if np.array_equal(from_rpy(rpy), R):
            return place | _unless(0.0, rpy=rpy)
    return place | {"rotation": R}
