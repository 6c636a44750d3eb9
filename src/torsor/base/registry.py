"""Registry of named objects, through which lower packages use higher packages without importing them.

``torsor/__init__.py`` declares which package registers a name. This package is imported when the name is first used.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

_known: dict[tuple[str, str], Any] = {}
_homes: dict[tuple[str, str], str] = {}


def declare(what: str, homes: Mapping[str, str]) -> None:
    """Declare the module that registers each name of a group."""
    _homes.update({(what, name): module for name, module in homes.items()})


def register(what: str, name: str, value: Any) -> None:
    """Register an object under a name of a group, such as the class of a result kind."""
    _known[what, name] = value


def names(what: str) -> tuple[str, ...]:
    """Return the declared and registered names of a group.

    Example:
        >>> register("colour", "red", 0xFF0000)
        >>> names("colour")
        ('red',)
    """
    return tuple(dict.fromkeys(name for group, name in (*_homes, *_known) if group == what))


def registered(what: str, name: str) -> Any:
    """Return a registered object, or None; the package that registers it is imported if necessary.

    Example:
        >>> register("colour", "red", 0xFF0000)
        >>> registered("colour", "red"), registered("colour", "blue")
        (16711680, None)
    """
    home = _homes.get((what, name))
    if (what, name) not in _known and home is not None:
        try:
            import_module(home)
        except ModuleNotFoundError as error:
            if not home.startswith(str(error.name)):
                raise
    return _known.get((what, name))


def subpackages(package: str, *names: str) -> Callable[[str], ModuleType]:
    """Return a package ``__getattr__`` that imports these modules or subpackages on first use.

    Example:
        >>> torsor.robot.parallel.__name__
        'torsor.robot.parallel'
    """

    def find(name: str) -> ModuleType:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return find
