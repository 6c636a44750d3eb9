"""The schema of TOML files: the keys of each table and the type of each value. See docs/toml.md."""

import difflib
from collections.abc import Iterable, Iterator
from reprlib import repr as short
from typing import Any

import numpy as np

from torsor.base.errors import ModelError, describe

Table = dict[str, Any]

# Defaults of the keys of a joint with one value, and of those with one value for each position or velocity.
ONCE = {"axis": (0.0, 0.0, 1.0), "point": 0.0, "pitch": 0.0, "ratio": 1.0, "offset": 0.0, "smooth": 0.0}
EACH = {"lower": -np.inf, "upper": np.inf, "velocity_limit": np.inf, "effort_limit": np.inf}
EACH |= {"coulomb": 0.0, "viscous": 0.0, "rotor_inertia": 0.0}
# The keys of each table; a star marks required keys.
KEYS = {
    "file": "torsor name gravity active units* links joints frames loops wheels couplings postures allowed_collisions",
    "units": "angle* length mass",
    "link": "name* mass com inertia unphysical visuals shapes",
    "visual": "shape* name size position rpy rotation color mesh path",
    "shape": "shape* name size position rpy rotation mesh path link contype conaffinity",
    "joint": " ".join(
        ["name* type* parent* child* position rpy rotation follows multi_turn spring motor flexible", *ONCE, *EACH]
    ),
    "spring": "stiffness* damping rest",
    "motor": "carrier* inertia* ratio axis stiffness damping coulomb viscous smooth",
    "frame": "name* link* position rpy rotation",
    "loop": "name* a* b* kind length",
    "wheel": "name* frame* kind radius roller ground",
    "coupling": "name* coefficients shares offset",
    "posture": "name* positions*",
    "allowed_collision": "a* b* reason",
}
UNITS = {"angle": ("rad", "deg"), "length": ("m",), "mass": ("kg",)}
# The values of the keys: in words, and as a type or as the allowed shapes of numbers; (-1,) is a row of any length.
_TYPES: dict[str, tuple[Any, str]] = {
    "a string in quotes": (
        str,
        "name angle link type parent child follows shape mesh path carrier a b kind frame ground reason",
    ),
    "a table": (dict, "spring motor flexible"),
    "a table of coordinates and their coefficients": (dict, "coefficients shares"),
    "a table of positions and their values": (dict, "positions"),
    "names of coordinates": (tuple, "active"),
    'a table with angle = "rad" or angle = "deg"': (dict, "units"),
    "tables": (list, "links joints frames visuals shapes loops wheels couplings postures allowed_collisions"),
    "true or false": (bool, "multi_turn unphysical"),
    "a finite number": ([()], "mass pitch ratio offset smooth damping rest length radius roller contype conaffinity"),
    "a finite number, or a law in quotes such as '100 + 500 * x**2'": ([(), str], "stiffness"),
    "3 finite numbers": ([(3,)], "gravity com position rpy axis point"),
    "3 or 4 finite numbers": ([(3,), (4,)], "color"),
    "a row of finite numbers": ([(-1,)], "size"),
    "3 rows of 3 finite numbers": ([(3, 3)], "rotation"),
    "3 rows of 3 finite numbers, or 6: ixx, iyy, izz, ixy, ixz, iyz": ([(3, 3), (6,)], "inertia"),
    "a number or a row of numbers, infinite only in limits": ([(), (-1,)], " ".join(EACH)),
}
_EXPECTED = {key: (expected, words) for words, (expected, keys) in _TYPES.items() for key in keys.split()}
# These keys have one number in a motor, but a matrix in a link or a row in a joint.
_EXPECTED |= {f"motor.{key}": ([()], "a finite number") for key in ("inertia", "coulomb", "viscous")}


def error(where: str, what: str, allowed: str = "", fix: str = "") -> ModelError:
    """Return the error of a file: where it is, what was found, what is allowed, and the fix."""
    return ModelError(describe(what, where=where, allowed=allowed, fix=fix))


def some(table: Table, *keys: str) -> Table:
    """Return the entries of a table with these keys, as far as it has them."""
    return {key: table[key] for key in keys if key in table}


def entries(kind: str, data: Table, where: str) -> Iterator[tuple[str, Table]]:
    """Yield (place for messages, checked table) of each table in a list; the place has its name, or else its number."""
    for number, entry in enumerate(data.get(f"{kind}s", ()), start=1):
        name = entry.get("name")
        place = f"{where}: {kind} {name!r}" if name and isinstance(name, str) else f"{where}: {kind} {number}"
        yield place, checked(kind, entry, place)


def checked(kind: str, data: Table, where: str) -> Table:
    """Return a table after checking its keys and values; numbers are floats or arrays."""
    known = {key.strip("*"): key.endswith("*") for key in KEYS[kind].split()}
    for key in data:
        one_of(known, key, "key", where)
    for key, required in known.items():
        if required and key not in data:
            raise error(where, f"no {key}", fix=f"add {key}, {(_EXPECTED.get(f'{kind}.{key}') or _EXPECTED[key])[1]}")
    return data if kind == "units" else {key: _value(kind, key, value, where) for key, value in data.items()}


def one_of(known: Iterable[str], found: Any, what: str, where: str) -> str:
    """Return a word if it is known, or raise an error that names the nearest known one."""
    if found not in tuple(known):
        near = difflib.get_close_matches(str(found).lower(), known, n=1)
        fix = f"did you mean {near[0]!r}?" if near else "use one of these"
        raise error(where, f"unknown {what} {short(found)}", ", ".join(known), fix)
    return str(found)


def _value(kind: str, key: str, value: Any, where: str) -> Any:
    """Return a value of the type of its key, numbers as a float or an array; otherwise raise an error."""
    expected, allowed = _EXPECTED.get(f"{kind}.{key}") or _EXPECTED.get(key, (type(value), ""))
    if isinstance(expected, list) and type(value) in expected:
        return value
    if expected is tuple and type(value) is list and all(type(each) is str for each in value):
        return tuple(value)
    if expected is type(value) and (expected is not list or all(type(each) is dict for each in value)):
        return value
    cells = np.array(value, dtype=object)  # rows of different lengths stay lists, which are not numbers
    fits = isinstance(expected, list) and (cells.shape in expected or (cells.ndim == 1 and (-1,) in expected))
    largest = np.inf if np.isinf(EACH.get(key, 0.0)) else np.finfo(float).max  # NaN fails this comparison too
    sound = [abs(x) <= largest if type(x) is float else type(x) is int and abs(x) < 2**63 for x in cells.flat]
    if not fits or not all(sound):
        raise error(where, f"{key} is {short(value)}", allowed, "remove the quotes" if isinstance(value, str) else "")
    array = cells.astype(float)
    return array if array.ndim else float(array)
