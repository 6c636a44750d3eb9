"""Handling of Ctrl-C while the ``torsor`` command imports its packages: a one-line message and exit status 130.

This file is imported first and must import quickly. It has no effect in programs that import Torsor.
"""

import os
import sys
from types import TracebackType

STOPPED = 130  # exit status of programs stopped by Ctrl-C
WORDS = "stopped by Ctrl-C before there was a result"


def is_command() -> bool:
    """Return whether this process runs the command ``torsor`` or ``python -m torsor``.

    Example:
        >>> is_command()
        False
    """
    if sys.argv[:1] == ["-m"]:  # while Python locates the module
        return sys.orig_argv[1:3] == ["-m", "torsor"]
    name = sys.argv[0] if sys.argv else ""
    return name.replace("\\", "/").rpartition("/")[2] in ("torsor", "torsor.exe")


def end_in_words() -> None:
    """Install a hook that ends the process with a one-line message after an uncaught interrupt."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            before(kind, error, trace)
            return
        sys.stderr.write(f"{WORDS}\n")
        sys.stderr.flush()
        os._exit(STOPPED)

    sys.excepthook = hook


if is_command():
    end_in_words()
