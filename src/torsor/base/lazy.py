"""Modules of a package that are imported when they are first used."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def subpackages(package: str, *names: str) -> Callable[[str], ModuleType]:
    """Return the ``__getattr__`` of a package that imports these modules or subpackages on first use.

    Example:
        >>> torsor.robot.parallel.__name__
        'torsor.robot.parallel'
    """

    def find(name: str) -> ModuleType:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return find
