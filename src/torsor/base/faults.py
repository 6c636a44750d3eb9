"""Faults of a file that is read strictly: all of them in one error, not the first alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torsor.base.errors import ModelError, warn

MOST = 20  # faults that an error shows
_FOUND: ContextVar[list[str] | None] = ContextVar("faults", default=None)


class StopReadingError(ModelError):
    """Reading cannot go on after the faults that were found."""


def refuse_or_warn(message: str, strict: bool) -> None:
    """Raise a ``ModelError`` where reading is strict; otherwise give a ``ModelWarning``.

    Inside ``all_faults`` the error comes when reading has ended.

    Example:
        >>> refuse_or_warn("arm.urdf: odd", strict=True)
        Traceback (most recent call last):
        torsor.ModelError: arm.urdf: odd
    """
    faults = _FOUND.get()
    if not strict:
        warn(message)
    elif faults is None:
        raise ModelError(message)
    elif message not in faults:
        faults.append(message)


def stop_reading() -> None:
    """End the reading inside ``all_faults``: what was refused so far is the error.

    Example:
        >>> with all_faults():
        ...     refuse_or_warn("arm.urdf: no mass", strict=True)
        ...     stop_reading()
        Traceback (most recent call last):
        torsor.ModelError: arm.urdf: no mass
    """
    raise StopReadingError("reading cannot go on")


@contextmanager
def all_faults() -> Iterator[None]:
    """Raise one ``ModelError`` with everything that is refused inside, and with the error that ends the reading.

    Example:
        >>> with all_faults():
        ...     refuse_or_warn("arm.urdf: odd", strict=True)
        ...     refuse_or_warn("arm.urdf: odder", strict=True)
        Traceback (most recent call last):
        torsor.ModelError: 2 faults:
        arm.urdf: odd
        arm.urdf: odder
    """
    faults = list[str]()
    before = _FOUND.set(faults)
    try:
        yield
    except ModelError as error:
        if not faults:
            raise
        if not isinstance(error, StopReadingError):
            faults.append(str(error))
    finally:
        _FOUND.reset(before)
    if len(faults) == 1:
        raise ModelError(faults[0])
    if faults:
        more = [f"... {len(faults)} in all"] if len(faults) > MOST else []
        raise ModelError("\n".join([f"{len(faults)} faults:", *faults[:MOST], *more]))
