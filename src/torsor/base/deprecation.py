"""Public names that were renamed: the old ones still work, with a DeprecationWarning that names the new one."""

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def warn_deprecated(text: str) -> None:
    """Warn at the line outside of this package that uses an old name: Python shows the warning only if it is there.

    Example:
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     warn_deprecated("old is deprecated; use new")
        >>> str(caught[0].message)
        'old is deprecated; use new'
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_internal(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    place = frame.f_globals
    registry = place.setdefault("__warningregistry__", {})
    file, module = frame.f_code.co_filename, place.get("__name__", "")
    warnings.warn_explicit(text, DeprecationWarning, file, frame.f_lineno, module, registry)


def _is_internal(module: str) -> bool:
    return module.partition(".")[0] == "torsor" or module.startswith("importlib._bootstrap")


def renamed_names(module: str, names: Mapping[str, tuple[str, Any]]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module whose public names were renamed: {old: (new, object)}.

    Example:
        >>> getattr_of_module = renamed_names("torsor.motion", {"Old": ("motion.New", int)})
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     getattr_of_module("Old") is int
        True
        >>> str(caught[0].message)
        'torsor.motion.Old is deprecated; use motion.New'
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new, value = names[name]
        warn_deprecated(f"{module}.{name} is deprecated; use {new}")
        return value

    return find


def renamed_argument(where: str, old: str, new: str, given: Any, value: Any) -> Any:
    """Return the value of an argument that was renamed: ``given`` under the old name if not None, else ``value``.

    Example:
        >>> renamed_argument("MotionProblem", "yielding", "relaxation_order", None, ())
        ()
    """
    if given is None:
        return value
    warn_deprecated(f"{where}: {old}= is deprecated; use {new}=")
    return given


def renamed_attribute(where: str, old: str, new: str) -> Any:
    """Return a property for the body of a class whose attribute or method was renamed.

    Example:
        >>> class Step:
        ...     fraction = 0.5
        ...     share = renamed_attribute("Step", "share", "fraction")
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     Step().share
        0.5
        >>> str(caught[0].message)
        'Step.share is deprecated; use Step.fraction'
    """

    def find(self: Any) -> Any:
        warn_deprecated(f"{where}.{old} is deprecated; use {where}.{new}")
        return getattr(self, new)

    return property(find)
