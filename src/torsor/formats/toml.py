"""TOML, Torsor's own format: short when written by hand, exact when written by ``write_toml``. See docs/toml.md."""

import difflib
import json
import secrets
import tomllib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe, warn
from torsor.robot import KINDS, Frame, Joint, JointKind, Link, Mechanism, Visual, assemble
from torsor.robot.values import ROTATION_TOLERANCE
from torsor.spatial import from_rpy, make_pose, to_rpy

__all__ = ["read_toml", "write_toml"]

Array = NDArray[np.float64]
Table = dict[str, Any]
VERSION = 1
LARGEST_FILE = 64_000_000  # bytes; published robots need less than a hundredth of it

# What a joint has once, and what it has for each of its positions or velocities, where the file does not say.
_ONCE = {"axis": (0.0, 0.0, 1.0), "point": 0.0, "pitch": 0.0, "ratio": 1.0, "offset": 0.0, "smooth": 0.0}
_EACH = {"lower": -np.inf, "upper": np.inf, "velocity_limit": np.inf, "effort_limit": np.inf}
_EACH |= {"coulomb": 0.0, "viscous": 0.0, "rotor_inertia": 0.0}
# The keys of each table; those with a star must be there.
_KEYS = {
    "file": "torsor name gravity units* links joints frames",
    "units": "angle* length mass",
    "link": "name* mass com inertia unphysical visuals",
    "visual": "shape* name size position rpy rotation color mesh path",
    "joint": " ".join(["name* type* parent* child* position rpy rotation follows multi_turn", *_ONCE, *_EACH]),
    "frame": "name* link* position rpy rotation",
}
_UNITS = {"angle": ("rad", "deg"), "length": ("m",), "mass": ("kg",)}
_SIZES = {"box": 3, "cylinder": 2, "sphere": 1, "capsule": 2, "mesh": 3}  # how many numbers give the size of a shape
# What the keys hold, in words and as a type or as the shapes that numbers may have; (-1,) is a row of any length.
_HOLDS: dict[str, tuple[Any, str]] = {
    "a string in quotes": (str, "name angle link type parent child follows shape mesh path"),
    'a table with angle = "rad" or angle = "deg"': (dict, "units"),
    "tables": (list, "links joints frames visuals"),
    "true or false": (bool, "multi_turn unphysical"),
    "a finite number": ([()], "mass pitch ratio offset smooth"),
    "3 finite numbers": ([(3,)], "gravity com position rpy axis point"),
    "3 or 4 finite numbers": ([(3,), (4,)], "color"),
    "a row of finite numbers": ([(-1,)], "size"),
    "3 rows of 3 finite numbers": ([(3, 3)], "rotation"),
    "3 rows of 3 finite numbers, or 6: ixx, iyy, izz, ixy, ixz, iyz": ([(3, 3), (6,)], "inertia"),
    "a number or a row of numbers, infinite only in limits": ([(), (-1,)], " ".join(_EACH)),
}
_EXPECTED = {key: (expected, words) for words, (expected, keys) in _HOLDS.items() for key in keys.split()}


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
        raise _error(path.name, "the file is too large", f"{LARGEST_FILE // 10**6} MB", "check the path")
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
    path = Path(path)
    if path.suffix.lower() != ".toml":
        raise _error(path.name, f"the suffix is {path.suffix!r}", ".toml", f"name it {path.stem}.toml")
    if not path.parent.is_dir():
        raise _error(str(path), "its folder does not exist", fix="make the folder first")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")  # in the same folder: replacing is then one step
    try:
        part.write_bytes(_content(mechanism))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _content(mechanism: Mechanism) -> bytes:
    """Return the file's bytes, checked by reading them: a mechanism that ``assemble`` did not make may not fit."""
    blocks = (head + "".join(f"{k} = {_text(v)}\n" for k, v in table.items()) for head, table in _tables(mechanism))
    content = "\n".join(blocks).encode(errors="replace")  # half a surrogate pair will not read back equal
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whoever made the mechanism was warned then
        plain = Mechanism(**{each.name: getattr(mechanism, each.name) for each in fields(Mechanism)})
        if _Reader(f"{mechanism.name!r} as TOML", strict=False).read(content, "", "fixed") != plain:
            raise _error(f"{mechanism.name!r} as TOML", "would not read back equal", fix="check names and visuals")
    return content


def _error(where: str, what: str, allowed: str = "", fix: str = "") -> ModelError:
    return ModelError(describe(what, where=where, allowed=allowed, fix=fix))


class _Reader:
    """One file being read: its name for messages, whether its angles are degrees and unphysical inertias are errors."""

    def __init__(self, source: str, strict: bool) -> None:
        self.source, self.strict, self.degrees = source, strict, False

    def read(self, content: bytes, name: str, base: str) -> Mechanism:
        """Return the mechanism of a file's content; ``name`` is for one that states none."""
        try:
            data = tomllib.loads(content.decode("utf-8-sig"))  # some editors begin a file with the mark of UTF-8
            repr(data)  # whole numbers too long to be shown, in hexadecimal, fail here and not in a message about them
        except (ValueError, RecursionError) as error:
            raise _error(self.source, f"not valid TOML: {error}", fix="correct it, and save it as UTF-8") from None
        if short(data.get("torsor")) != str(VERSION):  # compared as text, because 1.0 and true are equal to 1
            what = f"format version {short(data['torsor'])}" if "torsor" in data else "no format version"
            raise _error(self.source, what, f"torsor = {VERSION}", "write it at the top, or use another Torsor")
        data = _checked("file", {"name": name} | data, self.source)
        for key, unit in _checked("units", data["units"], f"{self.source}: [units]").items():
            _one_of(_UNITS[key], unit, f"unit of {key}", f"{self.source}: [units]")
        self.degrees = data["units"]["angle"] == "deg"
        links = [self._link(*entry) for entry in _entries("link", data, self.source)]
        joints = [self._joint(*entry) for entry in _entries("joint", data, self.source)]
        frames = [Frame(e["name"], e["link"], self._pose(at, e)) for at, e in _entries("frame", data, self.source)]
        return assemble(data["name"], links, joints, frames, source=self.source, base=base, **_some(data, "gravity"))

    def _pose(self, where: str, entry: Table) -> Array:
        rpy, R = entry.get("rpy", np.zeros(3)), entry.get("rotation")
        if "rpy" in entry and R is not None:
            raise _error(where, "both rpy and rotation", "one of them", "remove one")
        if not self.degrees and np.abs(rpy).max() > 2 * np.pi:
            what, fix = f"rpy is {rpy.tolist()} rad, more than a turn", 'write angle = "deg" under [units]'
            raise _error(where, what, "angles in radians", fix)
        if R is None:
            R = from_rpy(np.radians(rpy) if self.degrees else rpy)
        elif np.abs(R @ R.T - np.eye(3)).max() > ROTATION_TOLERANCE or np.linalg.det(R) < 0:
            raise _error(where, f"rotation is {R.tolist()}", "a right-handed rotation matrix", "write 8 digits or more")
        return make_pose(R, entry.get("position"))

    def _link(self, where: str, entry: Table) -> Link:
        inertia = entry.get("inertia", np.zeros(6))
        inertia = inertia[[[0, 3, 4], [3, 1, 5], [4, 5, 2]]] if inertia.ndim == 1 else inertia
        visuals = tuple(self._visual(*visual) for visual in _entries("visual", entry, where))
        settings = _some(entry, "name", "mass", "com")
        known = entry.get("unphysical", False)  # whoever wrote the file knows that no body has this inertia
        strict = self.strict and not known
        link = Link(inertia=inertia, visuals=visuals, strict=strict, source=self.source, **settings)
        if link.defect and not known:
            warn(link.defect)
        return link

    def _visual(self, where: str, entry: Table) -> Visual:
        shape = _one_of(_SIZES, entry["shape"], "shape", where)
        size = tuple(entry.get("size", np.ones(3 if shape == "mesh" else 0)).tolist())
        if len(size) != _SIZES[shape]:
            raise _error(where, f"size has {len(size)} numbers", f"{_SIZES[shape]} for a {shape}")
        color = tuple(entry["color"].tolist()) if "color" in entry else None
        return Visual(shape, size, self._pose(where, entry), color, **_some(entry, "mesh", "path", "name"))

    def _joint(self, where: str, entry: Table) -> Joint:
        kind = KINDS[_one_of(KINDS, entry["type"], "type", where)]
        settings = _some(entry, "name", "type", "parent", "child", *_ONCE) | {"coordinate": entry.get("follows", "")}
        if self.degrees and "offset" in entry and kind.turns == (True,):
            settings["offset"] = np.radians(entry["offset"])
        settings |= {key: self._each(where, key, entry, kind) for key in _EACH if key in entry}
        return Joint(placement=self._pose(where, entry), source=self.source, **settings)

    def _each(self, where: str, key: str, entry: Table, kind: JointKind) -> Array:
        """Return what a joint has for each position or velocity, angles in radians."""
        values, turning = entry[key], _turning(key, kind)
        if values.ndim and values.shape != turning.shape:
            raise _error(where, f"{key} has {len(values)} numbers", f"a number, or a row of {len(turning)}")
        values = np.broadcast_to(values, turning.shape)
        if not (self.degrees or entry.get("multi_turn")) and _like_degrees(key, values, kind):
            fix = 'write angle = "deg" under [units], or multi_turn = true in this joint if radians are meant'
            raise _error(where, f"{key} is {values.tolist()} rad, which looks like degrees", "radians", fix)
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


def _some(table: Table, *keys: str) -> Table:
    return {key: table[key] for key in keys if key in table}


def _entries(kind: str, data: Table, where: str) -> Iterator[tuple[str, Table]]:
    """Give the checked tables of a list, each after its place for messages: its name, or else its number."""
    for number, entry in enumerate(data.get(f"{kind}s", ()), start=1):
        name = entry.get("name")
        place = f"{where}: {kind} {name!r}" if name and isinstance(name, str) else f"{where}: {kind} {number}"
        yield place, _checked(kind, entry, place)


def _checked(kind: str, data: Table, where: str) -> Table:
    """Return a table in which each key is a known one and each value is what it holds, numbers as arrays."""
    known = {key.strip("*"): key.endswith("*") for key in _KEYS[kind].split()}
    for key in data:
        _one_of(known, key, "key", where)
    for key, required in known.items():
        if required and key not in data:
            raise _error(where, f"no {key}", fix=f"add {key}, {_EXPECTED[key][1]}")
    return data if kind == "units" else {key: _value(key, value, where) for key, value in data.items()}


def _one_of(known: Iterable[str], found: Any, what: str, where: str) -> str:
    if found not in tuple(known):
        near = difflib.get_close_matches(str(found).lower(), known, n=1)
        fix = f"did you mean {near[0]!r}?" if near else "use one of these"
        raise _error(where, f"unknown {what} {short(found)}", ", ".join(known), fix)
    return str(found)


def _value(key: str, value: Any, where: str) -> Any:
    """Return a value that is what its key holds, numbers as an array; otherwise raise an error."""
    expected, allowed = _EXPECTED.get(key, (type(value), ""))
    if expected is type(value) and (expected is not list or all(type(each) is dict for each in value)):
        return value
    cells = np.array(value, dtype=object)  # rows of several lengths stay lists, which are no numbers
    fits = isinstance(expected, list) and (cells.shape in expected or (cells.ndim == 1 and (-1,) in expected))
    largest = np.inf if np.isinf(_EACH.get(key, 0.0)) else np.finfo(float).max  # NaN is not at most that either
    sound = [abs(x) <= largest if type(x) is float else type(x) is int and abs(x) < 2**63 for x in cells.flat]
    if not fits or not all(sound):
        raise _error(where, f"{key} is {short(value)}", allowed, "remove the quotes" if isinstance(value, str) else "")
    return cells.astype(float)


def _tables(mechanism: Mechanism) -> Iterator[tuple[str, Table]]:
    """Give the tables of the file, in order, each after its header."""
    yield "", {"torsor": VERSION, "name": mechanism.name, "gravity": mechanism.gravity}
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
        for key, default in (_ONCE | _EACH).items():
            values = getattr(joint, key)
            if np.any(values != default):  # where there is one for each and all are the same, one stands for all
                table[key] = values[0] if key in _EACH and (values == values[0]).all() else values
            if _like_degrees(key, values, joint.kind):
                table["multi_turn"] = True
        yield "[[joints]]\n", table
    for frame in mechanism.frames:
        yield "[[frames]]\n", {"name": frame.name, "link": frame.link, **_place(frame.pose)}


def _text(value: Any) -> str:
    """Return a value as TOML: numbers with the fewest digits that read back the same, matrices a row on each line."""
    if isinstance(value, (str, bool)):  # as in JSON, but for the character 7F, which TOML wants escaped too
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if np.ndim(value) == 2:
        return "[\n" + "".join(f"  {_text(row)},\n" for row in value) + "]"
    return f"[{', '.join(map(_text, value))}]" if np.ndim(value) else repr(float(value)).removesuffix(".0")


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
