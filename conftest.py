"""Settings of all tests: a kernel cache of their own, one core each, names for examples, Ctrl-C."""

import os
import signal
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

os.environ.setdefault("TORSOR_CACHE", str(Path(__file__).parent / ".pytest_cache" / "kernels"))
# Small matrices gain nothing from more threads, which take the cores from the tests that run beside.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def names_of_examples(doctest_namespace: dict[str, object]) -> None:
    """Examples in docstrings may use ``torsor`` and ``np`` without importing them, as readers do."""
    doctest_namespace |= {"torsor": import_module("torsor"), "np": import_module("numpy")}


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Return a function that presses Ctrl-C. It installs Python's handler, since background jobs ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the examples in docstrings that need a framework which is not installed."""
    for framework in ("jax", "torch"):
        if find_spec(framework) is None:
            for item in items:
                if isinstance(item, pytest.DoctestItem) and item.name.endswith(f"to_{framework}.to_{framework}"):
                    item.add_marker(pytest.mark.skip(reason=f"{framework} is not installed (extra: {framework})"))
