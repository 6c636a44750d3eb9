"""Base class of mechanism parts: frozen dataclasses that compare by value, including arrays."""

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np


class Part:
    """Base of frozen dataclasses with ``eq=False``, whose ``==`` compares arrays, unlike the generated one."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self) if f.compare)  # type: ignore[arg-type]
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else bool(a == b) for a, b in pairs)

    def __hash__(self) -> int:
        return hash((type(self).__name__, getattr(self, "name", None)))

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are not copied or sent to other processes.
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)  # a copy of a read-only array is writable
        self.__dict__.update(state)

    def _set(self, **values: Any) -> None:
        """Set fields of the frozen dataclass; for use in ``__post_init__`` only."""
        for name, value in values.items():  # -0.0 becomes 0.0, so that equal parts have equal files and cache keys
            object.__setattr__(self, name, value + 0.0 if type(value) is float else value)


P = TypeVar("P", bound=Part)


def changed(part: P, **values: Any) -> P:
    """Return a copy of a part with other values, which are not checked."""
    made = part.__class__.__new__(part.__class__)
    made.__dict__.update(part.__getstate__(), **values)
    return made
