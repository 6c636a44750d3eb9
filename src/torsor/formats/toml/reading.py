"""Reading TOML, the native format, which is concise if written by hand and exact if written by Torsor."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.checks import ROTATION_TOLERANCE, whole_number
from torsor.base.decoding import Table, check_keys, check_version, error, known_word, toml_data
from torsor.base.errors import ModelError, shortened
from torsor.base.files import read_limited
from torsor.formats.meshes.mesh_files import own_folders
from torsor.mechanism import KINDS, Frame, Joint, JointKind, Link, Mechanism, Motor, Shape, Spring, Visual, build
from torsor.mechanism.curves import Cam
from torsor.mechanism.flexible import Flexible, Modes, RodSection, TipTurn
from torsor.mechanism.loops import Closure, Coupling, Loop, Wheel
from torsor.mechanism.parts import ALL_BITS, SHAPE_SIZES, VISUAL_SIZES, link_of, symmetric
from torsor.spatial import from_rpy, make_pose

# The schema of TOML files: the keys of each table and the type of each value. See docs/compute/toml.md.

# Defaults of the joint keys with one value, and of those with one value per position or velocity.
SINGLE_DEFAULTS = {"axis": (0.0, 0.0, 1.0), "point": 0.0, "pitch": 0.0, "ratio": 1.0, "offset": 0.0, "smooth": 0.0}
SINGLE_DEFAULTS |= {"friction_model": ""}
EACH = {"lower": -np.inf, "upper": np.inf, "velocity_limit": np.inf, "effort_limit": np.inf}
EACH |= {"coulomb": 0.0, "viscous": 0.0, "rotor_inertia": 0.0, "kp": 0.0, "kd": 0.0}
# The keys of each table; a star marks required keys.
_JOINT_KEYS = "name* type* parent* child* position rpy rotation follows multi_turn spring motor flexible"
KEYS = {
    "file": "torsor name gravity active units* links joints frames loops wheels couplings postures allowed_collisions",
    "units": "angle* length mass",
    "link": "name* mass com inertia unphysical visuals shapes",
    "visual": "shape* name size position rpy rotation color mesh path",
    "shape": "shape* name size position rpy rotation mesh path link contype conaffinity friction priority heights",
    "joint": " ".join([_JOINT_KEYS, *SINGLE_DEFAULTS, *EACH]),
    "spring": "stiffness* damping rest",
    "motor": "carrier* inertia* ratio axis stiffness damping coulomb viscous smooth",
    "frame": "name* link* position rpy rotation",
    "loop": "name* a* b* kind length",
    "wheel": "name* frame* kind radius roller ground",
    "coupling": "name* coefficients offset",
    "posture": "name* positions*",
    "allowed_collision": "a* b* reason",
}
UNITS = {"angle": ("rad", "deg"), "length": ("m",), "mass": ("kg",)}
# The values of the keys: a description, and a type or the allowed shapes of numbers; -1 is any length.
_TEXTS = "name angle link type parent child follows shape mesh path carrier a b kind frame ground reason"
_TYPES: dict[str, tuple[Any, str]] = {
    "a string in quotes": (str, _TEXTS),
    "a function of v in quotes, such as '0.4 * sign(v) * exp(-(v / 0.1)**2)'": (str, "friction_model"),
    "a table": (dict, "spring motor flexible"),
    "a table of coordinates and their coefficients": (dict, "coefficients"),
    "a table of positions and their values": (dict, "positions"),
    "coordinate names": (tuple, "active"),
    'a table with angle = "rad" or angle = "deg"': (dict, "units"),
    "tables": (list, "links joints frames visuals shapes loops wheels couplings postures allowed_collisions"),
    "true or false": (bool, "multi_turn unphysical"),
    "a finite number": (
        [()],
        "mass pitch ratio offset smooth damping rest length radius roller contype conaffinity friction priority",
    ),
    "a finite number, or a function in quotes such as '100 + 500 * x**2'": ([(), str], "stiffness"),
    "3 finite numbers": ([(3,)], "gravity com position rpy axis point"),
    "3 or 4 finite numbers": ([(3,), (4,)], "color"),
    "a row of finite numbers": ([(-1,)], "size"),
    "rows of finite numbers": ([(-1, -1)], "heights"),
    "3 rows of 3 finite numbers": ([(3, 3)], "rotation"),
    "3 rows of 3 finite numbers, or 6: ixx, iyy, izz, ixy, ixz, iyz": ([(3, 3), (6,)], "inertia"),
    "a number or a row of numbers, infinite only in limits": ([(), (-1,)], " ".join(EACH)),
}
_EXPECTED = {key: (expected, words) for words, (expected, keys) in _TYPES.items() for key in keys.split()}
# These keys have one number in a motor, but a matrix in a link or a row in a joint.
_EXPECTED |= {f"motor.{key}": ([()], "a finite number") for key in ("inertia", "coulomb", "viscous")}


def some(table: Table, *keys: str) -> Table:
    """Return the entries of a table with keys in ``keys``."""
    return {key: table[key] for key in keys if key in table}


def entries(kind: str, data: Table, where: str) -> Iterator[tuple[str, Table]]:
    """Yield (place for messages, checked table) for each table in a list. The place contains its name or number."""
    for number, entry in enumerate(data.get(f"{kind}s", ()), start=1):
        name = entry.get("name")
        place = f"{where}: {kind} {name!r}" if name and isinstance(name, str) else f"{where}: {kind} {number}"
        yield place, checked(kind, entry, place)


def checked(kind: str, data: Table, where: str) -> Table:
    """Return a table after checking its keys and values. Numbers are floats or arrays."""
    known = {key.strip("*"): key.endswith("*") for key in KEYS[kind].split()}
    expected = {key: (_EXPECTED.get(f"{kind}.{key}") or _EXPECTED[key])[1] for key, needed in known.items() if needed}
    check_keys(data, known, where, required=expected)
    return data if kind == "units" else {key: _value(kind, key, value, where) for key, value in data.items()}


def _value(kind: str, key: str, value: Any, where: str) -> Any:
    """Return a value if it has the type of its key, with numbers as a float or array. Raise ModelError otherwise."""
    expected, allowed = _EXPECTED.get(f"{kind}.{key}") or _EXPECTED.get(key, (type(value), ""))
    if isinstance(expected, list) and type(value) in expected:
        return value
    if expected is tuple and type(value) is list and all(type(entry) is str for entry in value):
        return tuple(value)
    if expected is type(value) and (expected is not list or all(type(entry) is dict for entry in value)):
        return value
    cells = np.array(value, dtype=object)  # rows of different lengths remain lists, which are not numbers
    fits = isinstance(expected, list) and (cells.shape in expected or (-1,) * cells.ndim in expected)
    largest = np.inf if np.isinf(EACH.get(key, 0.0)) else np.finfo(float).max  # NaN fails this comparison too
    sound = [abs(x) <= largest if type(x) is float else type(x) is int and abs(x) < 2**63 for x in cells.flat]
    if not fits or not all(sound):
        raise error(where, f"{key} is {short(value)}", allowed, "remove the quotes" if isinstance(value, str) else "")
    array = cells.astype(float)
    return array if array.ndim else float(array)


# Flexible joints in TOML files: ``[joints.flexible]`` contains the fields of their modes (docs/compute/flexible.md).

_KINDS: dict[str, type[Any]] = {"modes": Modes, "turn": TipTurn, "section": RodSection, "cam": Cam}
_OPTIONAL: dict[type[Any], set[str]] = {
    Modes: {"damping", "second", "tip_second", "inertias", "turns"},
    Cam: {"powers", "inner_polynomial", "inner_powers"},
}


def flexible_table(flexible: Flexible) -> Table:
    """Return the table of a flexible joint: the kind of its data, and the fields of the data."""
    kind = next(name for name, item in _KINDS.items() if type(flexible) is item)
    return {"kind": kind} | {field.name: getattr(flexible, field.name) for field in _fields(type(flexible))}


def read_flexible(table: Table, where: str) -> Flexible:
    """Return the data of a flexible joint. Raise ModelError for invalid data."""
    kind = known_word(_KINDS, table.get("kind"), "kind", where)
    known = [field.name for field in _fields(_KINDS[kind])]
    required = [name for name in known if name not in _OPTIONAL.get(_KINDS[kind], {"damping"})]
    check_keys(table, ["kind", *known], where, required)
    values: Table = {key: value for key, value in table.items() if key != "kind"}
    for key, value in values.items():
        if key in ("turns", "counts"):
            allowed, kinds = ("true or false", bool) if key == "turns" else ("whole numbers", int)
            if not isinstance(value, (list, tuple)) or not all(type(entry) is kinds for entry in value):
                raise error(where, f"{key} is {value!r}"[:100], f"a list: {allowed}")
            values[key] = tuple(value)
        elif not all(type(item) in (int, float) for item in np.array(value, dtype=object).flat):
            raise error(where, f"{key} is {value!r}"[:100], "numbers, with rows of equal length")
    if "source" in {field.name for field in fields(_KINDS[kind])}:
        values["source"] = where
    made: Flexible = _KINDS[kind](**values)
    return made


def _fields(kind: type[Any]) -> list[Any]:
    return [field for field in fields(kind) if field.compare]


VERSION = 1
LARGEST_FILE = 64_000_000  # bytes; published robots need less than one percent of it


def read_toml(path: Path, base: str = "fixed", strict: bool = True, snap: float = 0.0) -> Mechanism:
    r"""Return the mechanism of a TOML file; docs/compute/toml.md describes the format.

    ``base="floating"`` adds a free joint between the world and the root link. With ``strict=False``, a physically
    impossible inertia causes a warning instead of an error. Angles within ``snap`` of multiples of pi/12 are rounded.
    """
    reader = _Reader(path.name, strict, own_folders(path))
    return reader.read(read_limited(path, LARGEST_FILE), path.stem, base, snap)


def parse_toml(
    content: bytes, source: str, name: str = "", base: str = "fixed", strict: bool = True, snap: float = 0.0
) -> Mechanism:
    """Return the mechanism in the content of a file. ``source`` is for messages, and ``name`` is the default name."""
    return _Reader(source, strict).read(content, name, base, snap)


class _Reader:
    """Reader of one file: its name for messages, and whether angles are in degrees and checks are strict."""

    def __init__(self, source: str, strict: bool, folders: tuple[str, ...] = ()) -> None:
        self.source, self.strict, self.degrees, self.folders = source, strict, False, folders

    def read(self, content: bytes, name: str, base: str, snap: float) -> Mechanism:
        """Return the mechanism of the content of a file."""
        data = toml_data(content, self.source)
        check_version(data, VERSION, self.source)
        data = checked("file", {"name": name} | data, self.source)
        for key, unit in checked("units", data["units"], f"{self.source}: [units]").items():
            known_word(UNITS[key], unit, f"unit of {key}", f"{self.source}: [units]")
        self.degrees = data["units"]["angle"] == "deg"
        links = [self._link(*entry) for entry in entries("link", data, self.source)]
        joints = [self._joint(*entry) for entry in entries("joint", data, self.source)]
        frames = [Frame(e["name"], e["link"], self._pose(at, e)) for at, e in entries("frame", data, self.source)]
        settings = some(data, "name", "gravity", "active") | {"loops": list(self._loops(data)), "snap": snap}
        postures = dict[str, Table]()
        for at, entry in entries("posture", data, self.source):
            if entry["name"] in postures:
                raise error(at, "the name is used twice", "each name once")
            postures[entry["name"]] = entry["positions"]
        settings["posture_table"] = postures
        touching = [item for _, item in entries("allowed_collision", data, self.source)]
        settings["allowed_collisions"] = [(item["a"], item["b"], item.get("reason", "user")) for item in touching]
        made = build(links=links, joints=joints, frames=frames, source=self.source, base=base, **settings)
        for name, positions in postures.items():
            unknown = [key for key in positions if key not in made.position_names]
            if unknown:
                where, allowed = f"{self.source}: posture {name!r}", ", ".join(made.position_names[:12])
                raise error(where, f"no position {unknown[0]!r}", allowed)
        return made

    def _loops(self, data: Table) -> Iterator[Closure]:
        for _, entry in entries("loop", data, self.source):
            yield Loop(**entry, source=self.source)
        for _, entry in entries("wheel", data, self.source):
            roller = entry.pop("roller", 0.0)
            yield Wheel(**entry, roller=np.radians(roller) if self.degrees else roller, source=self.source)
        for where, entry in entries("coupling", data, self.source):
            if "coefficients" not in entry:
                raise error(where, "it has no coefficients", "coefficients = { joint = 1.0, other = -2.0 }")
            yield Coupling(**entry, source=self.source)

    def _pose(self, where: str, entry: Table) -> Array:
        rpy, R = entry.get("rpy", np.zeros(3)), entry.get("rotation")
        if "rpy" in entry and R is not None:
            raise error(where, "both rpy and rotation are given", "one of them", "remove one")
        if not self.degrees and np.abs(rpy).max() > 2 * np.pi:
            what, fix = f"rpy is {shortened(rpy)} rad, more than one turn", 'write angle = "deg" under [units]'
            raise error(where, what, "angles in radians", fix)
        if R is None:
            R = from_rpy(np.radians(rpy) if self.degrees else rpy)
        elif np.abs(R @ R.T - np.eye(3)).max() > ROTATION_TOLERANCE or np.linalg.det(R) < 0:
            what, allowed = f"rotation is {shortened(R)}", "a right-handed rotation matrix"
            raise error(where, what, allowed, "write 8 digits or more")
        return make_pose(R, entry.get("position"))

    def _link(self, where: str, entry: Table) -> Link:
        inertia = entry.get("inertia", np.zeros(6))
        inertia = symmetric(inertia) if inertia.ndim == 1 else inertia
        visuals = []
        for place, item in entries("visual", entry, where):
            color = tuple(item["color"].tolist()) if "color" in item else None
            visuals.append(Visual(**self._geometry(place, item, VISUAL_SIZES), color=color))
        surfaces = tuple(visuals), tuple(self._shape(*shape) for shape in entries("shape", entry, where))
        body = entry.get("mass", 0.0), entry.get("com", np.zeros(3)), inertia
        if not entry.get("unphysical", False):
            return link_of(entry["name"], body, *surfaces, self.strict, self.source)
        # The file declares that the inertia is not physically consistent.
        return Link(entry["name"], *body, surfaces[0], strict=False, source=self.source, shapes=surfaces[1])

    def _shape(self, where: str, entry: Table) -> Shape:
        masks: Table = {}
        for key in some(entry, "contype", "conaffinity", "priority"):
            mask = int(entry[key]) if entry[key].is_integer() else entry[key]  # writers may print 1.0 or 1
            masks[key] = whole_number(mask, where, key, least=-ALL_BITS - 1, most=ALL_BITS)
        try:
            return Shape(
                **self._geometry(where, entry, SHAPE_SIZES), **some(entry, "link", "friction", "heights"), **masks
            )
        except ModelError as wrong:
            raise wrong.inside(where) from None

    def _geometry(self, where: str, entry: Table, sizes: Mapping[str, int]) -> Table:
        """Return the common fields of visuals and collision shapes: shape, size, pose, name and mesh."""
        shape = known_word(sizes, entry["shape"], "shape", where)
        size = tuple(entry.get("size", np.ones(3 if shape == "mesh" else 0)).tolist())
        if len(size) != sizes[shape]:
            raise error(where, f"size has {len(size)} numbers", f"{sizes[shape]} for a {shape}")
        result = some(entry, "mesh", "path", "name") | {"shape": shape, "size": size, "pose": self._pose(where, entry)}
        return result | {"folders": self.folders if shape == "mesh" else None}

    def _joint(self, where: str, entry: Table) -> Joint:
        type_name = known_word((*KINDS, "flexible"), entry["type"], "type", where)
        settings = some(entry, "name", "type", "parent", "child", *SINGLE_DEFAULTS)
        settings["coordinate"] = entry.get("follows", "")
        if "flexible" in entry:
            settings["flexible"] = read_flexible(entry["flexible"], f"{where}: flexible")
        elif type_name == "flexible":
            raise error(where, "a flexible joint needs its modes", fix="add the table [joints.flexible]")
        kind = settings["flexible"].kind if "flexible" in settings else KINDS[type_name]
        if self.degrees and "offset" in entry and kind.turns == (True,):
            settings["offset"] = float(np.radians(entry["offset"]))
        settings |= {key: self._each(where, key, entry, kind) for key in EACH if key in entry}
        if "spring" in entry:
            spring = checked("spring", entry["spring"], f"{where}: spring")
            if self.degrees and "rest" in spring and kind.turns == (True,):
                spring["rest"] = float(np.radians(spring["rest"]))
            settings["spring"] = Spring(**spring, source=f"{where}: spring")
        if "motor" in entry:
            motor = checked("motor", entry["motor"], f"{where}: motor")
            settings["motor"] = Motor(**motor, source=f"{where}: motor")
        return Joint(placement=self._pose(where, entry), source=self.source, **settings)

    def _each(self, where: str, key: str, entry: Table, kind: JointKind) -> Array:
        """Return the numbers of a joint's key, one per position or velocity, with angles in radians."""
        values, turning = np.asarray(entry[key]), _turning(key, kind)
        if values.ndim and values.shape != turning.shape:
            raise error(where, f"{key} has {len(values)} numbers", f"a number, or a row of {len(turning)}")
        values = np.broadcast_to(values, turning.shape)
        if not (self.degrees or entry.get("multi_turn")) and looks_like_degrees(key, values, kind):
            fix = 'write angle = "deg" under [units], or multi_turn = true in this joint if radians are meant'
            raise error(where, f"{key} is {shortened(values)} rad, which looks like degrees", "radians", fix)
        return np.where(turning, np.radians(values), values) if self.degrees else values


def _turning(key: str, kind: JointKind) -> NDArray[np.bool_]:
    """Return a mask of the numbers of a joint's key that are angles or angular velocities (quaternions are not)."""
    count = kind.nq if key in ("lower", "upper") else kind.nv
    angular = key in ("lower", "upper", "velocity_limit") and count == kind.nv
    return np.array(kind.turns if angular else [False] * count, dtype=bool)


def looks_like_degrees(key: str, values: Array, kind: JointKind) -> bool:
    """Return whether position limits look like degrees (90, 170, 360): multiples of 5 above one turn in radians."""
    angles = values[_turning(key, kind) & np.isfinite(values)] if key in ("lower", "upper") else np.zeros(0)
    return bool(((abs(angles) > 2 * np.pi) & (angles % 5 == 0)).any())
