"""Input validation for all user arguments.

Each function returns the value converted to the type that the code uses, or raises a ``ModelError`` that states the
place, the argument, the value and the allowed values. Booleans, text and complex numbers are not accepted as numbers.
``where`` is the object to which the argument belongs (a robot, a file, a term), and ``what`` is the argument.
"""

import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import IDENTITY, Array, real_numbers
from torsor.base.errors import ModelError, listing, shown

Kind = TypeVar("Kind")

# Orthonormality tolerance for rotation matrices; larger errors are mistakes, not rounding.
ROTATION_TOLERANCE = 1e-6
# Largest number in a mechanism, in SI units: products of up to six such numbers, such as forces, remain finite.
MAX_NUMBER = 1e50
_FINITE = sys.float_info.max
SMALL_ARRAY = 16  # number of entries up to which Python floats are faster than NumPy calls


# Single numbers


def number(
    value: object,
    where: str,
    what: str,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    finite: bool = True,
) -> float:
    """Return a real number within bounds; ``least`` and ``most`` are inclusive, ``above`` and ``below`` exclusive.

    Example:
        >>> number(2, "arm", "mass", least=0)
        2.0
        >>> number(True, "arm", "mass", least=0)
        Traceback (most recent call last):
        torsor.ModelError: arm: mass is True; allowed: a finite number, 0 or more
    """
    if type(value) is float:
        result = value
    else:
        numbers = real_numbers(value)
        result = math.nan if numbers is None or numbers.shape else float(numbers)  # NaN is outside all bounds
    inside = (
        least <= result <= most and (above < result or above == -math.inf) and (result < below or below == math.inf)
    )
    if inside and not (finite and math.isinf(result)):
        return result
    bounds = [f"{least:g} or more"] if least > -math.inf else [f"above {above:g}"] if above > -math.inf else []
    bounds += [f"{most:g} or less"] if most < math.inf else [f"below {below:g}"] if below < math.inf else []
    kind = "a finite number" if finite else "a number"
    allowed = f"{kind}, {' and '.join(bounds)}" if bounds else kind
    raise ModelError(argument=what, value=value, where=where, allowed=allowed)


def positive(value: object, where: str, what: str) -> float:
    """Return a finite number above 0.

    Example:
        >>> positive(2, "effort", "width")
        2.0
    """
    return number(value, where, what, above=0.0)


def whole_number(value: object, where: str, what: str, *, least: int = 1, most: int | None = None) -> int:
    """Return an integer from ``least`` to ``most``.

    Example:
        >>> whole_number(3, "arm", "threads")
        3
    """
    if not is_whole(value) or value < least or (most is not None and value > most):
        allowed = f"a whole number from {least}" + ("" if most is None else f" to {most}")
        raise ModelError(argument=what, value=value, where=where, allowed=allowed)
    return int(value)


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer; booleans are not integers.

    Example:
        >>> is_whole(3), is_whole(True), is_whole(3.0)
        (True, False, False)
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def flag(value: object, where: str, what: str) -> bool:
    """Return a boolean; numbers and text are not booleans.

    Example:
        >>> flag(True, "arm.urdf", "strict")
        True
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ModelError(argument=what, value=value, where=where, allowed="True or False")
    return bool(value)


def interval(value: object, where: str, what: str) -> tuple[float, float]:
    """Return two finite numbers, the lower one first.

    Example:
        >>> interval((55, 65), "habits", "knee")
        (55.0, 65.0)
    """
    if isinstance(value, (list, tuple, np.ndarray)) and len(value) == 2:
        low, high = (number(entry, where, what) for entry in value)
        if low <= high:
            return low, high
    raise ModelError(argument=what, value=value, where=where, allowed="two numbers (lower, upper) with lower <= upper")


# Arrays


def real_array(value: ArrayLike, where: str, what: str) -> Array:
    """Return real numbers of any shape as a new array; NaN and infinity are allowed.

    Example:
        >>> real_array([1, 2], "robot", "pose")
        array([1., 2.])
    """
    numbers = real_numbers(value)
    if numbers is None:
        raise ModelError(argument=what, value=value, where=where, allowed="real numbers")
    return np.array(numbers, dtype=float)


def vectors(value: ArrayLike, count: int, where: str, what: str) -> Array:
    """Return finite vectors (..., count).

    Example:
        >>> vectors([[1, 2], [3, 4]], 2, "robot", "q").shape
        (2, 2)
    """
    allowed, numbers = f"(..., {count}) finite numbers", real_numbers(value)
    if numbers is None:
        raise ModelError(argument=what, value=value, where=where, allowed=allowed)
    if numbers.ndim == 0 or numbers.shape[-1] != count:
        raise ModelError(f"has shape {numbers.shape}", argument=what, value=value, where=where, allowed=allowed)
    array = np.asarray(numbers, dtype=float)
    if not np.isfinite(array).all():
        raise ModelError("is not finite", argument=what, value=value, where=where, allowed=allowed)
    return array


def finite_vector(value: object) -> Array | None:
    """Return a finite number, or a list of finite numbers, as an array (K,); return None for other values.

    Example:
        >>> finite_vector((1, 2.5)), finite_vector("2"), finite_vector([1.0, np.nan])
        (array([1. , 2.5]), None, None)
    """
    numbers = real_numbers(value)
    if numbers is None or numbers.ndim > 1 or not np.isfinite(numbers).all():
        return None
    return numbers.astype(float).ravel()


def positive_vector(value: ArrayLike, count: int, where: str, what: str, *, or_zero: bool = False) -> Array:
    """Return finite positive numbers (count,), from a single number or one per entry.

    Example:
        >>> positive_vector(3.0, 2, "arm", "kp").tolist()
        [3.0, 3.0]
    """
    single = np.asarray(value, dtype=object).ndim == 0
    result = frozen_array(value, () if single else (count,), where, what)
    if (result < 0).any() or (not or_zero and (result == 0).any()):
        allowed = "0 or more" if or_zero else "positive numbers"
        raise ModelError(argument=what, value=result, where=where, allowed=allowed)
    return np.full(count, result) if single else result


def frozen_array(
    value: ArrayLike, shape: tuple[int, ...], where: str, what: str, *, finite: bool = True, most: float = _FINITE
) -> Array:
    """Return a read-only copy of numbers up to ``most``, with -0.0 as 0.0.

    Infinity is allowed only if ``finite`` is False. NaN is never allowed.

    Example:
        >>> frozen_array([1, 2, 3], (3,), "link 'hand'", "com").tolist()
        [1.0, 2.0, 3.0]
    """
    if type(value) is np.ndarray and value.dtype.char == "d" and value.ndim:
        array: Array = value + 0.0  # a copy, with -0.0 as 0.0
    else:
        array = real_array(value, where, what)
        array += 0.0
    if array.shape != shape:
        allowed = f"an array of shape {shape}" if shape else "one number"
        raise ModelError(f"has shape {array.shape}", argument=what, value=value, where=where, allowed=allowed)
    bound = most if finite else math.inf
    entries = array.ravel().tolist() if array.size <= SMALL_ARRAY else []
    # The sum of a few finite numbers is finite, unless NaN or infinity is among them.
    inside = bool(entries) and math.isfinite(sum(entries)) and max(entries) <= bound and min(entries) >= -bound
    if not inside and not (np.abs(array) <= bound).all():  # NaN also fails the comparison
        allowed = "finite numbers" if bound > MAX_NUMBER else f"finite numbers up to {most:g}"
        raise ModelError(argument=what, value=array, where=where, allowed=allowed)
    array.setflags(write=False)
    return array


def frozen_pose(value: ArrayLike, where: str, what: str, *, most: float = _FINITE) -> Array:
    """Return a read-only pose [[R, p], [0, 0, 0, 1]] (4 x 4) with a rotation matrix R and no number above ``most``.

    Example:
        >>> frozen_pose(2 * np.eye(4), "frame 'tool'", "pose")
        Traceback (most recent call last):
        torsor.ModelError: frame 'tool': pose is not a pose (orthonormality error 3.0e+00, determinant 8); \
allowed: [[R, p], [0, 0, 0, 1]] with R a rotation matrix
    """
    if value is IDENTITY:  # read-only and valid
        return IDENTITY
    T = frozen_array(value, (4, 4), where, what, most=most)
    # For the sixteen numbers of a pose, NumPy calls would take ten times as long as Python floats.
    (a, b, c, _), (d, e, f, _), (g, h, i, _), (x, y, z, w) = T.tolist()
    squares = (a * a + b * b + c * c - 1, d * d + e * e + f * f - 1, g * g + h * h + i * i - 1)
    products = (a * d + b * e + c * f, a * g + b * h + c * i, d * g + e * h + f * i)
    error = max(map(abs, (*squares, *products, x, y, z, w - 1)))
    determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    if not error <= ROTATION_TOLERANCE or determinant < 0:
        message = f"is not a pose (orthonormality error {error:.1e}, determinant {determinant:.3g})"
        allowed = "[[R, p], [0, 0, 0, 1]] with R a rotation matrix"
        raise ModelError(message, argument=what, value=T, where=where, allowed=allowed)
    return T


def direction(value: ArrayLike, where: str, what: str) -> Array:
    """Return a read-only unit vector (3,) along a vector of any nonzero length.

    Example:
        >>> direction([0, 3e200, 0], "loop 'pin'", "axis").tolist()
        [0.0, 1.0, 0.0]
    """
    if isinstance(value, list) and list(map(type, value)) == [float] * 3:
        unit = _unit_vector(*value)
        if unit is not None:
            return unit
    vector = frozen_array(value, (3,), where, what)
    largest = max(map(abs, vector.tolist()))
    scaled = vector / largest if largest > 1e9 else vector  # the squares of very large numbers would overflow
    length = math.sqrt(scaled @ scaled)
    if length < 1e-9:
        fix = f"give the direction of the {what}, for example [0, 0, 1]"
        raise ModelError(argument=what, value=vector, where=where, allowed="a direction", fix=fix)
    # A unit vector keeps its bits, so that reading a saved file restores an equal vector.
    unit = scaled / length if abs(length - 1) > 1e-15 else scaled
    return vector if unit is vector else frozen_array(unit, (3,), where, what)


@lru_cache(maxsize=256)  # files contain few different axes
def _unit_vector(x: float, y: float, z: float) -> Array | None:
    """Return the direction of a vector, or None if its length is 0."""
    try:
        return direction(np.array([x, y, z]), "", "")
    except ModelError:
        return None


def common_shape(where: str, **shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which the leading axes of arrays broadcast.

    Example:
        >>> common_shape("robot", pose=(3, 1), guess=(2,))
        (3, 2)
    """
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        result = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        message = f"leading axes do not broadcast: {result}"
        raise ModelError(message, where=where, allowed="equal lengths, or 1") from None


def arrays(value: ArrayLike, core: tuple[int, ...], where: str, what: str) -> Array:
    """Return a value as an array of finite numbers (..., *core) with any leading axes.

    Example:
        >>> arrays(np.zeros((5, 2, 6)), (2, 6), "robot", "external").shape
        (5, 2, 6)
        >>> arrays([0.0, np.nan], (2,), "robot", "q0")
        Traceback (most recent call last):
        torsor.ModelError: robot: q0 is nan at [1]; allowed: finite numbers
    """
    array = real_array(value, where, what)
    if array.shape[max(0, array.ndim - len(core)) :] != core:
        allowed = f"(..., {', '.join(map(str, core))})"
        raise ModelError(f"has shape {array.shape}", argument=what, value=value, where=where, allowed=allowed)
    if not np.isfinite(array).all():
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        message = f"is {array[at]} at {list(at)}" if at else f"is {array[at]}"
        raise ModelError(message, argument=what, value=value, where=where, allowed="finite numbers")
    return array


# Names and tables


def name_of(value: object, what: str, where: str = "") -> str:
    """Return the name of a part, which must be a non-empty string, because a number could be mistaken for an index.

    Example:
        >>> name_of("hand", "link")
        'hand'
    """
    if not isinstance(value, str) or not value:
        raise ModelError(f"the name of a {what} is {value!r}", value=value, where=where, allowed="a non-empty string")
    return value


def one_of(value: object, allowed: Sequence[str], where: str, what: str) -> str:
    """Return a word if it is one of ``allowed``; otherwise raise ModelError.

    Example:
        >>> one_of("mean", ["mean", "peak"], "reaction", "kind")
        'mean'
    """
    if not isinstance(value, str) or value not in allowed:
        raise ModelError(argument=what, value=value, where=where, allowed=", ".join(map(repr, allowed)))
    return value


def known_name(name: Any, names: Collection[str], where: str, what: str) -> str:
    """Return a name if it is one of ``names``; ``what`` is the kind of object that they name.

    Example:
        >>> known_name("elbwo", ["shoulder", "elbow"], "arm", "joint")
        Traceback (most recent call last):
        torsor.ModelError: arm: no joint 'elbwo'; allowed: shoulder, elbow
    """
    if not isinstance(name, str) or name not in names:
        raise ModelError(f"no {what} {shown(name)}", value=name, where=where, allowed=listing(names, like=str(name)))
    return name


def indices_of(
    wanted: Sequence[str] | str | None, names: Sequence[str], where: str, what: str = "coordinate"
) -> list[int]:
    """Return the indices of names (None: all indices); ``what`` is the kind of object that they name.

    Example:
        >>> indices_of(["elbow"], ["shoulder", "elbow"], "limits")
        [1]
    """
    if wanted is None:
        return list(range(len(names)))
    listed = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(listed, Sequence):
        raise ModelError(shown(listed), value=listed, where=where, allowed=f"some of {listing(names)}")
    return [names.index(known_name(name, names, where, what)) for name in listed]


def by_name(value: Any, names: Sequence[str], missing: float, where: str) -> Array:
    """Return one number per name (n,), from a single number, a sequence of n numbers, or {name: number}.

    Names that a table omits have the number ``missing``. Infinity is allowed; NaN is not.

    Example:
        >>> by_name({"elbow": 2.0}, ["shoulder", "elbow"], np.inf, "limits").tolist()
        [inf, 2.0]
    """
    if isinstance(value, Mapping):
        result = np.full(len(names), missing)
        result[indices_of(list(value), names, where)] = by_name(list(value.values()), list(value), missing, where)
        return result
    count, array = len(names), real_numbers(value)
    if array is None or array.shape not in ((), (count,)) or np.isnan(array).any():
        raise ModelError(shown(value), value=value, where=where, allowed=f"a number, or {count} of them")
    return np.broadcast_to(array.astype(float), (count,))


def several(value: Any) -> tuple[Any, ...]:
    """Return the elements of an iterable as a tuple, or a tuple with a single object; text is a single object.

    Example:
        >>> several("one"), several(["one", "two"])
        (('one',), ('one', 'two'))
    """
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def table(value: object, where: str, what: str) -> dict[str, Any]:
    """Return a mapping as a new dictionary; None becomes an empty dictionary.

    Example:
        >>> table(None, "walk", "frozen")
        {}
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ModelError(argument=what, value=value, where=where, allowed="a table {name: value}")
    return dict(value)


def rows(value: object, where: str, what: str, allowed: str = "a list") -> list[Any]:
    """Return the elements of a list, tuple or array; text, numbers, sets and tables are not lists.

    Example:
        >>> rows((1, 2), "robot", "parents")
        [1, 2]
        >>> rows(5, "robot", "home", "a list of poses")
        Traceback (most recent call last):
        torsor.ModelError: robot: home is 5; allowed: a list of poses
    """
    if isinstance(value, np.ndarray) and value.ndim:
        return list(value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return list(value)
    raise ModelError(argument=what, value=value, where=where, allowed=allowed)


def instance_of(value: object, kind: type[Kind], where: str, what: str, *, allowed: str = "") -> Kind:
    """Return an object if it is an instance of a class; ``allowed`` describes the expected object.

    Example:
        >>> instance_of(3, dict, "walk", "load", allowed="a Box")
        Traceback (most recent call last):
        torsor.ModelError: walk: load is 3; allowed: a Box
    """
    if not isinstance(value, kind):
        raise ModelError(argument=what, value=value, where=where, allowed=allowed or f"a {kind.__name__}")
    return value
