"""Public names that were renamed: the old ones still work, with a DeprecationWarning that names the new one."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any


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
        warnings.warn(f"{module}.{name} is deprecated; use {new}", DeprecationWarning, stacklevel=2)
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
    warnings.warn(f"{where}: {old}= is deprecated; use {new}=", DeprecationWarning, stacklevel=3)
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
        warnings.warn(f"{where}.{old} is deprecated; use {where}.{new}", DeprecationWarning, stacklevel=2)
        return getattr(self, new)

    return property(find)
