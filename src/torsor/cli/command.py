"""The definition of a command of the command line."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rich.console import Console


@dataclass(frozen=True)
class Command:
    """One command: ``torsor NAME ...``, the object ``COMMAND`` of the file ``NAME.py``.

    ``add_arguments`` declares its options. ``run`` does the work and prints to the console; it raises a ``ModelError``
    (or ``MotionError``, ``SimulationError``, ``OSError``) for a mistake of the user, and returns None when it
    succeeded, or another exit status of ``torsor.cli.statuses``. ``statuses`` are those that not all commands have, or
    with another meaning, and their words in ``--help``, which also shows ``examples``: whole command lines.
    ``options`` names the option of each argument of the library that has another name than its option.

    Example:
        >>> hello = Command(lambda parser: None, lambda _, console: console.print("hello"))
        >>> hello.run(Namespace(), Console())
        hello
    """

    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace, Console], int | None]
    statuses: Mapping[int, str] = field(default_factory=dict)
    examples: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
