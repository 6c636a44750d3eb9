"""Checks of refused input by the fields of the error; ``tests/base/test_errors.py`` tests the wording of messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from torsor.base.errors import Message, ModelError, ModelWarning, shown


@contextmanager
def refused(
    about: str = "", *, error: type[Exception] = ModelError, **fields: Any
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expect an error with these fields: ``argument`` and ``value`` are equal, the others contain the given text.

    ``about``, for tables of cases, is the argument, the value, or a part of another field: of ``what`` only where no
    argument is named.
    """
    assert about or fields, "name a field of the error"
    with pytest.raises(error) as caught:
        yield caught
    assert _fits(caught.value, about, fields), str(caught.value)


@contextmanager
def warned(about: str = "", **fields: Any) -> Iterator[pytest.WarningsRecorder]:
    """Expect a ``ModelWarning`` with these fields, as ``refused`` does for errors."""
    assert about or fields, "name a field of the warning"
    with pytest.warns(ModelWarning) as caught:
        yield caught
    assert any(_fits(each.message, about, fields) for each in caught), [str(each.message) for each in caught]


def _fits(found: Any, about: str, fields: dict[str, Any]) -> bool:
    if not isinstance(found, Message):
        return False
    value = found.value if isinstance(found.value, str) else shown(found.value)
    texts = [found.where, found.allowed, found.fix, "" if found.argument else found.what]
    return (about in ("", found.argument, value) or any(about in each for each in texts)) and all(
        shown(getattr(found, name)) == shown(expected)
        if name in ("argument", "value")
        else expected in getattr(found, name)
        for name, expected in fields.items()
    )
