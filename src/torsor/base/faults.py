"""Strict reading: all faults in a file are collected in one error."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torsor.base.errors import ModelError, gathered_warnings, warn

MAX_FAULTS = 20  # maximum number of faults that an error shows
_FAULTS: ContextVar[list[ModelError] | None] = ContextVar("faults", default=None)


class StopReadingError(ModelError):
    """Exception that ends reading after faults that make it impossible to continue."""


def refuse_or_warn(fault: ModelError, strict: bool, effect: str = "") -> None:
    """Raise a ``ModelError`` if reading is strict; otherwise issue a ``ModelWarning`` that states the ``effect``.

    Inside ``all_faults``, the error is raised at the end of reading.

    Example:
        >>> refuse_or_warn(ModelError("no mass", where="arm.urdf"), strict=True)
        Traceback (most recent call last):
        torsor.ModelError: arm.urdf: no mass
    """
    faults = _FAULTS.get()
    if not strict:
        fields = vars(fault) | {"what": f"{fault.what}; {effect}" if effect else fault.what}
        warn(**fields)
    elif faults is None:
        raise fault
    elif str(fault) not in map(str, faults):
        faults.append(fault)


def stop_reading() -> None:
    """Stop reading inside ``all_faults``, whose error then contains the faults found so far.

    Example:
        >>> with all_faults():
        ...     refuse_or_warn(ModelError("no mass", where="arm.urdf"), strict=True)
        ...     stop_reading()
        Traceback (most recent call last):
        torsor.ModelError: arm.urdf: no mass
    """
    raise StopReadingError("reading cannot continue")


@contextmanager
def all_faults() -> Iterator[None]:
    """Raise one ``ModelError`` with all faults found inside the block, including the error that ends it.

    Similar warnings are combined (``gathered_warnings``).

    Example:
        >>> with all_faults():
        ...     refuse_or_warn(ModelError("no mass", where="arm.urdf"), strict=True)
        ...     refuse_or_warn(ModelError("no axis", where="arm.urdf"), strict=True)
        Traceback (most recent call last):
        torsor.ModelError: 2 faults:
        arm.urdf: no mass
        arm.urdf: no axis
    """
    faults = list[ModelError]()
    before = _FAULTS.set(faults)
    try:
        with gathered_warnings():
            yield
    except ModelError as error:
        if not faults:
            raise
        if not isinstance(error, StopReadingError):
            faults.append(error)
    finally:
        _FAULTS.reset(before)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        more = [f"... {len(faults)} in all"] if len(faults) > MAX_FAULTS else []
        raise ModelError("\n".join([f"{len(faults)} faults:", *map(str, faults[:MAX_FAULTS]), *more]))
