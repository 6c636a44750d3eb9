"""Errors and warnings as data: place, problem, allowed values and fix; ``str`` joins them into a sentence."""

import contextlib
import copy
import functools
import math
import re
import reprlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

# A warning is attributed to the line that called Torsor, which may do so through the standard library's cached
# properties and context managers.
_OWN_FILES = str(Path(__file__).parents[1]), functools.__file__, contextlib.__file__
_PENDING: ContextVar["list[ModelWarning] | None"] = ContextVar("warnings", default=None)
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'")
_NAME_OR_NUMBER = re.compile(_QUOTED.pattern + r"|[-+]?\b[\d.]+(?:e[-+]?\d+)?|[-+]")
# Control characters that terminals interpret (including U+009B), and characters that change the text direction. Line
# feeds are kept, because some messages are lists; names are shown by repr, which escapes them.
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
MAX_VALUES_SHOWN = 16  # maximum number of values that a message shows in full, enough for a pose
_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 80
_REPR.maxlist = _REPR.maxtuple = MAX_VALUES_SHOWN


class Message(Exception):  # noqa: N818 - the base of errors and of warnings
    """The fields of an error or warning; ``str`` joins them: ``where: what; allowed: ...; fix: ...``.

    If ``argument`` is given, ``what`` is the clause that follows its name, by default "is ``value``". ``value`` is
    ``...`` (Ellipsis) if there is none.

    Example:
        >>> error = ModelError(argument="mass", value=-1.0, where="arm.toml: link 'hand'", allowed="0 or more")
        >>> print(error)
        arm.toml: link 'hand': mass is -1.0; allowed: 0 or more
        >>> error.argument, error.value, error.allowed
        ('mass', -1.0, '0 or more')
    """

    def __init__(
        self, what: str = "", *, where: str = "", argument: str = "", value: Any = ..., allowed: str = "", fix: str = ""
    ) -> None:
        self.what = what or f"is {shown(value)}"
        self.where, self.argument, self.value, self.allowed, self.fix = where, argument, value, allowed, fix
        super().__init__(str(self))

    def __str__(self) -> str:
        what = f"{self.argument} {self.what}" if self.argument else self.what
        return describe(what, where=self.where, allowed=self.allowed, fix=self.fix)

    def but(self, **fields: Any) -> Self:
        """Return a copy of the message with other fields.

        Example:
            >>> print(ModelError(argument="steps", value=0).but(argument="--steps"))
            --steps is 0
        """
        made = copy.copy(self)
        vars(made).update(fields)
        made.args = (str(made),)
        return made

    def inside(self, place: str) -> Self:
        """Return a copy of the message with an outer place prepended to ``where``.

        Example:
            >>> print(ModelError(argument="mass", value=-1, where="link 'hand'").inside("arm.toml"))
            arm.toml: link 'hand': mass is -1
        """
        return self.but(where=f"{place}: {self.where}" if self.where else place)


class ModelError(Message, ValueError):
    """Invalid input: an impossible mechanism, an unknown name, or an array of the wrong shape."""

    __module__ = "torsor"  # tracebacks show the public name


class MotionError(Message, RuntimeError):
    """An infeasible problem; ``result`` is the motion with the smallest maximum violation, or None.

    ``conflict`` contains the names of constraints that contradict each other. ``violation`` is the smallest relative
    amount by which all bounds would have to be relaxed.

    Example:
        >>> from torsor import motion
        >>> ends = [motion.Start(q=[0.0], v=0.0), motion.End(q=[1.0], v=0.0)]
        >>> limits = motion.Velocities(upper=0.5, name="slow")
        >>> phase = motion.Phase(1.0, points=6)
        >>> problem = motion.MotionProblem(torsor.library.planar_chain(1), phase, motion.Effort(), [*ends, limits])
        >>> try:
        ...     problem.solve()
        ... except MotionError as error:
        ...     print(error.conflict)
        ('slow',)
    """

    __module__ = "torsor"
    result: Any = None
    conflict: tuple[str, ...] = ()
    violation: float = math.nan


class SimulationError(Message, RuntimeError):
    """A simulation that cannot continue; ``trajectory`` is its ``Trajectory`` so far, or None without samples."""

    __module__ = "torsor"
    trajectory: Any = None


class ModelWarning(Message, UserWarning):
    """Input that is probably wrong, or is only partly used."""

    __module__ = "torsor"


def describe(what: str, *, where: str = "", allowed: str = "", fix: str = "") -> str:
    """Join the parts of a message: ``where: what; allowed: ...; fix: ...``.

    Example:
        >>> describe("mass is -1.0 kg", where="arm.toml: link 'hand'", allowed="0 or more", fix="correct the sign")
        "arm.toml: link 'hand': mass is -1.0 kg; allowed: 0 or more; fix: correct the sign"
    """
    message = f"{where}: {what}" if where else what
    if allowed:
        message += f"; allowed: {allowed}"
    if fix:
        message += f"; fix: {fix}"
    return printable(message)


def missing(what: str, extra: str, *, where: str = "", instead: str = "") -> ImportError:
    """Return the error for a missing package that ``extra`` installs; ``instead`` is an alternative without it.

    Example:
        >>> print(missing("Parquet files need pyarrow", "parquet", instead="write .sqlite"))
        Parquet files need pyarrow; fix: pip install "torsor[parquet]", or write .sqlite
    """
    fix = f'pip install "torsor[{extra}]"'  # zsh treats unquoted brackets as a pattern
    return ImportError(describe(what, where=where, fix=f"{fix}, or {instead}" if instead else fix))


def printable(text: str) -> str:
    r"""Escape control characters, so that a name in a file cannot control a terminal.

    Example:
        >>> printable("arm\x1b[2J")
        'arm\\x1b[2J'
    """
    return _CONTROL.sub(lambda item: item[0].encode("unicode_escape").decode(), text)


def shortened(values: Any, most: int = MAX_VALUES_SHOWN) -> str:
    """Format numbers, an array or nested lists as a list; long ones show the first entries and the total count.

    Example:
        >>> shortened([0.5, -1.0])
        '[0.5, -1.0]'
        >>> shortened(range(78), most=4)
        '[0, 1, 2, 3, ... 78 in all]'
    """
    nested = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(nested, Iterable) or isinstance(nested, (str, bytes)):
        return repr(nested)
    nested = list(nested)
    count = sum(1 for _ in _leaves(nested))
    if count <= most:
        return repr(nested)
    first = [leaf for leaf, _ in zip(_leaves(nested), range(most), strict=False)]
    return f"[{', '.join(map(repr, first))}, ... {count} in all]"


def shown(value: Any) -> str:
    """Format a value for a message, with arrays as lists and long values shortened.

    Example:
        >>> shown("panda"), shown(np.float64(0.5)), shown(range(3))
        ("'panda'", '0.5', 'range(0, 3)')
    """
    return shortened(value) if hasattr(value, "tolist") else _REPR.repr(value)


def listing(names: Iterable[str], most: int = 12, like: str = "") -> str:
    """Join names for a message, up to ``most`` and the total count; names similar to ``like`` come first.

    Example:
        >>> listing(["hip", "knee", "ankle"], most=2, like="ankel")
        'ankle, hip, ... 3 in all'
    """
    shown = list(names)
    if len(shown) <= most:
        return ", ".join(shown)
    near = get_close_matches(like, shown, most) if like else []
    first = [*near, *(name for name in shown if name not in near)][:most]
    return f"{', '.join(first)}, ... {len(shown)} in all"


def _leaves(nested: list[Any]) -> Iterator[Any]:
    waiting = nested[::-1]
    while waiting:
        item = waiting.pop()
        if isinstance(item, (list, tuple)):
            waiting.extend(reversed(item))
        else:
            yield item


def warn(what: str = "", **fields: Any) -> None:
    """Issue a ``ModelWarning`` with these fields, at the line of user code that called Torsor.

    Example:
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     warn("it has no mass", where="link 'hand'")
        >>> print(caught[0].message)
        link 'hand': it has no mass
    """
    message, pending = ModelWarning(what, **fields), _PENDING.get()
    if pending is not None:
        pending.append(message)
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN_FILES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


@contextmanager
def gathered_warnings() -> Iterator[None]:
    """Issue the warnings of a block at its end; similar warnings are combined into one that names all places.

    Warnings are similar if they differ only in names and numbers.

    Example:
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     with gathered_warnings():
        ...         for name in ("hand", "foot"):
        ...             warn("it has no mass", where=f"arm.urdf: link {name!r}")
        >>> print(*(item.message for item in caught))
        arm.urdf: link 'hand': it has no mass (2 in all, also link 'foot')
    """
    pending = list[ModelWarning]()
    before = _PENDING.set(pending)
    try:
        yield
    finally:
        _PENDING.reset(before)
        kinds = dict[tuple[str, ...], list[ModelWarning]]()
        for message in pending:
            kind = (message.argument, *(_NAME_OR_NUMBER.sub("", text) for text in (message.what, message.allowed)))
            kinds.setdefault(kind, []).append(message)
        for first, *others in kinds.values():
            places = dict.fromkeys(_place(item, first) for item in others if str(item) != str(first))
            more = f" ({len(places) + 1} in all, also {listing(places)})" if places else ""
            warn(**vars(first) | {"what": first.what + more})


def _place(message: ModelWarning, first: ModelWarning) -> str:
    """Return the text that distinguishes a warning from similar ones: its place without the file, or its name."""
    if message.where != first.where:
        return message.where.removeprefix(first.where.partition(": ")[0] + ": ")
    names = _QUOTED.findall(message.what)
    return next((name for name in names if name not in first.what), message.what)
