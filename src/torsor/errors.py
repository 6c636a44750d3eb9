"""Errors and warnings. Each message says where the problem is, what was found, what is allowed, and the fix."""

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


class ModelError(ValueError):
    """Invalid input: a description that is no mechanism, an unknown name, or an array of the wrong shape."""


class ModelWarning(UserWarning):
    """Input that can be used, but is probably wrong, or is not used completely."""


def describe(what: str, *, where: str = "", allowed: str = "", fix: str = "") -> str:
    """Return the one-line message of an error: ``where: what; allowed: ...; fix: ...``.

    Example:
        >>> describe("mass is -1.0 kg", where="arm.toml: link 'hand'", allowed="0 or more", fix="correct the sign")
        "arm.toml: link 'hand': mass is -1.0 kg; allowed: 0 or more; fix: correct the sign"
    """
    message = f"{where}: {what}" if where else what
    if allowed:
        message += f"; allowed: {allowed}"
    if fix:
        message += f"; fix: {fix}"
    return message


def warn(message: str) -> None:
    """Give a ``ModelWarning`` at the line of the user's code that called Torsor.

    Example:
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     warn("link 'hand': odd")
        >>> str(caught[0].message)
        "link 'hand': odd"
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, ModelWarning, stacklevel=level)
