"""Settings of all tests: their kernel cache, which of them are long, names for examples, Ctrl-C."""

import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
# Kernels are kept between runs and shared by all clones: their names are hashes of all that they depend on.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "torsor-tests"
os.environ.setdefault("TORSOR_CACHE", str(CACHE))
# Small matrices gain nothing from more threads, which take the cores from the tests that run beside.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Tests compare with peers by the package of the benchmarks. Its folder is not on the path, since its files have the
# names of folders of tests.
BENCH = ROOT / "benchmarks" / "bench"
_spec = spec_from_file_location("bench", BENCH / "__init__.py", submodule_search_locations=[str(BENCH)])
assert _spec is not None
sys.modules["bench"] = module_from_spec(_spec)

# Seconds of each test function, all its cases together, with an empty kernel cache, written by ``make durations``.
# Those above the limit are marked long: ``make test`` leaves them out, ``make test-all`` runs them too.
DURATIONS = ROOT / "tests" / "durations.json"
LONG_SECONDS = 0.5
RECORDED_SECONDS = 0.4  # shorter ones are not in the file

# Files whose tests are all slow ones: whole searches, and laws that other files check on smaller robots.
SLOW_FILES = (
    "compiler/test_cuda_on_processor.py",
    "compiler/test_gufunc_rules.py",
    "compiler/test_random_graphs.py",
    "dynamics/laws/test_chain_rules.py",
    "dynamics/laws/test_derivatives.py",
    "dynamics/laws/test_directions.py",
    "dynamics/laws/test_energy_regressor.py",
    "dynamics/laws/test_hessian.py",
    "dynamics/laws/test_parametric.py",
    "dynamics/laws/test_tensors.py",
    "dynamics/literature/test_four_forms.py",
    "dynamics/peers/test_pinocchio_loops.py",
    "mechanism/flexible_links/test_elimination_of_modes.py",
    "formats/test_corpus.py",
    "human/test_printed.py",
    "human/test_small_problems.py",
    "identification/test_parallel_robots.py",
    "motion/test_between_nodes.py",
    "motion/test_derivatives.py",
    "motion/test_optima.py",
    "motion/test_problems.py",
    "robot/parallel/test_kinematics.py",
    "robot/parallel/test_modes.py",
    "robot/closed_loops/test_constrained_derivatives.py",
    "robot/closed_loops/test_library.py",
    "robot/closed_loops/test_random.py",
    "robot/test_scale.py",
    "simulation/test_boxes.py",
    "simulation/test_implicit.py",
    "simulation/test_loops.py",
)
SLOW_PATHS = {ROOT / "tests" / name for name in SLOW_FILES}


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--record-durations``, which ``make durations`` uses."""
    parser.addoption("--record-durations", action="store_true", help="write tests/durations.json")


def function_of(nodeid: str) -> str:
    """Return the name of a test function without its case."""
    return nodeid.partition("[")[0]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files of slow tests unread when slow tests are left out."""
    return True if "not slow" in config.option.markexpr and collection_path in SLOW_PATHS else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Generator[None, object, object]:
    """Look for examples in docstrings only in the sources, whose modules are imported by their names.

    Each file of tests would be searched for nothing, and pytest would run a module again after its package has.
    """
    is_source = ROOT / "src" in file_path.parents
    parent.config.option.doctestmodules = is_source
    if is_source and file_path.suffix == ".py" and file_path.stem != "__main__":
        parts = file_path.relative_to(ROOT / "src").with_suffix("").parts
        with suppress(ImportError):  # reported with the examples of the module
            import_module(".".join(parts).removesuffix(".__init__"))
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collection, which would visit thousands of tests again and again."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow and long tests; skip the examples in docstrings that need a framework which is not installed."""
    durations = json.loads(DURATIONS.read_text())
    for item in items:
        if item.path in SLOW_PATHS:
            item.add_marker(pytest.mark.slow)
        if durations.get(function_of(item.nodeid), 0.0) > LONG_SECONDS:
            item.add_marker(pytest.mark.long)
    for framework, extra in (("jax", "jax"), ("torch", "torch"), ("gymnasium", "gym")):
        if find_spec(framework) is None:
            examples = f"to_{framework}.to_{framework}", f"Environments.{framework}"
            for item in items:
                if isinstance(item, pytest.DoctestItem) and item.name.endswith(examples):
                    item.add_marker(pytest.mark.skip(reason=f"{framework} is not installed (extra: {extra})"))


class DurationRecorder:
    """Sums the durations of test functions, and writes them when the tests have ended."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the duration of a part of a test: setup, call or teardown."""
        name = function_of(report.nodeid)
        self.seconds[name] = self.seconds.get(name, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        rows = {name: round(each, 1) for name, each in sorted(self.seconds.items()) if each >= RECORDED_SECONDS}
        DURATIONS.write_text(json.dumps(rows, indent=0) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Record durations in the process that reports, not in its workers."""
    if config.getoption("record_durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(DurationRecorder())
