"""Studies in TOML files: a problem, its cases as a grid, a list or random samples, and the output file.

See docs/plan/sweep.md.
"""

from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np

from torsor.base.decoding import Table, check_keys, check_version, error, file_table, fitted
from torsor.base.errors import ModelError
from torsor.motion.declaration import NAMED_PROBLEMS
from torsor.motion.files import SETTINGS
from torsor.motion.sweeps.cases import Cases, grid, samples
from torsor.motion.sweeps.results import Results
from torsor.motion.sweeps.sweep import sweep

VERSION = 1
MAX_CASES = 10_000_000
MAX_VALUE = 1e300  # largest magnitude of the ends of a range
KEY_TYPES: dict[str, type] = {
    "torsor": int,
    "problem": str,
    "output": str,
    "workers": int,
    "cluster": str,
    "keep": list,
}
KEY_TYPES |= {"fixed": dict, "units": dict, "solver": dict, "grid": dict, "cases": list, "random": dict}
CASE_KEYS = ("grid", "cases", "random")
RANDOM_KEYS = ("count", "seed", "ranges")
AXIS_KEYS = ("from", "to", "count")


@dataclass(frozen=True)
class Study:
    """A study from a file: the arguments of ``torsor.sweep``. ``run`` computes it."""

    problem: str | Path
    cases: Cases
    output: Path | None = None
    workers: int | None = None
    cluster: str | None = None
    options: Table = field(default_factory=dict)

    def run(self, **changes: Any) -> Results:
        """Compute the study and return its results; ``changes`` are arguments of ``torsor.sweep``."""
        arguments: Table = {"output": self.output, "workers": self.workers, "executor": self.cluster, **self.options}
        if changes.get("workers") is not None:
            arguments["executor"] = None
        if changes.get("executor") is not None:
            arguments["workers"] = None
        return sweep(self.problem, self.cases, **arguments | changes)


def load_study(path: str | Path) -> Study:
    r"""Load a study from a TOML file, whose keys docs/plan/sweep.md describes; ``study.run()`` computes it.

    Example:
        >>> import tempfile
        >>> text = 'torsor = 1\nproblem = "walk"\ngrid.mass = [60, 80]\n'
        >>> text += 'grid.height = { from = 1.5, to = 1.9, count = 5 }'
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "study.toml").write_text(text)
        ...     study = load_study(folder + "/study.toml")
        >>> study.problem, len(study.cases), list(study.cases)[3]
        ('walk', 10, {'mass': 60, 'height': 1.8})
    """
    place = Path(path)
    return _Reader(place).read(file_table(place))


class _Reader:
    """Reader of one study file."""

    def __init__(self, path: Path) -> None:
        self.path, self.source = path, path.name

    def read(self, data: Table) -> Study:
        check_version(data, VERSION, self.source)
        required = {"problem": f"a .toml file or one of {', '.join(NAMED_PROBLEMS)}"}
        check_keys(data, KEY_TYPES, self.source, required)
        data = {key: fitted(value, KEY_TYPES[key], f"{self.source}: {key}") for key, value in data.items()}
        ways = [key for key in CASE_KEYS if key in data]
        if len(ways) != 1:
            message = f"{' and '.join(ways)} are all given" if ways else "there are no cases"
            raise error(
                self.source, message, f"one of {', '.join(CASE_KEYS)}", "add [grid]" if not ways else "keep one"
            )
        solver = data.get("solver", {})
        check_keys(solver, SETTINGS, f"{self.source}: solver")
        options: Table = {"keep": data.get("keep", []), "fixed": data.get("fixed"), "units": data.get("units")}
        options["settings"] = {SETTINGS[key]: value for key, value in solver.items()}
        output = self.path.parent / data["output"] if "output" in data else None
        try:
            cases = getattr(self, f"_{ways[0]}")(data[ways[0]])
        except ModelError as wrong:
            raise wrong if str(wrong).startswith(self.source) else wrong.inside(self.source) from None
        name = data["problem"]
        file = self.path.parent / name
        try:
            is_there = file.is_file()
        except OSError:  # not a valid file name
            is_there = False
        if name not in NAMED_PROBLEMS and not is_there:
            allowed = f"a .toml file relative to this one, or one of {', '.join(NAMED_PROBLEMS)}"
            raise error(f"{self.source}: problem", f"there is no problem {short(name)}", allowed)
        problem = name if name in NAMED_PROBLEMS else file
        return Study(problem, cases, output, data.get("workers"), data.get("cluster"), options)

    # The three ways to specify cases

    def _grid(self, given: Any) -> Cases:
        where = f"{self.source}: grid"
        axes = {name: self._axis(axis, f"{where}.{name}") for name, axis in self._leaves(given, where).items()}
        return grid(axes)

    def _axis(self, axis: Any, where: str) -> list[Any]:
        if type(axis) is list:
            return axis
        if type(axis) is not dict or set(axis) != set(AXIS_KEYS):
            raise error(where, f"found {short(axis)}", "a list of values, or { from = 1, to = 2, count = 5 }")
        count = axis["count"]
        if type(count) is not int or not 1 <= count <= MAX_CASES:
            raise error(where, f"count is {short(count)}", f"1 to {MAX_CASES}")
        for key in ("from", "to"):
            if type(axis[key]) not in (int, float) or abs(axis[key]) > MAX_VALUE:
                raise error(where, f"{key} is {short(axis[key])}", f"a number up to {MAX_VALUE:g}")
        # Rounded to short decimals: 1.6 instead of 1.6000000000000001.
        return [float(f"{value:.12g}") for value in np.linspace(float(axis["from"]), float(axis["to"]), count)]

    def _random(self, given: Any) -> Cases:
        where = f"{self.source}: random"
        check_keys(given, RANDOM_KEYS, where, required=("count", "ranges"))
        ranges = self._leaves(given["ranges"], f"{where}.ranges")
        return samples(given["count"], ranges, seed=given.get("seed", 0))

    def _cases(self, given: Any) -> Cases:
        if type(given) is not list or not given or not all(type(table) is dict for table in given):
            raise error(self.source, f"cases is {short(given)}", "an array of tables", "write [[cases]]")
        cases = [self._leaves(table, f"{self.source}: case {number}") for number, table in enumerate(given)]
        return Cases(len(cases), lambda: iter(cases))

    def _leaves(self, given: Any, where: str) -> Table:
        """Return the entries of nested tables under dotted names, as in TOML."""
        result: Table = {}
        for key, value in fitted(given, dict, where).items():
            if type(value) is dict and set(value) != set(AXIS_KEYS):
                inner = self._leaves(value, f"{where}.{key}")
                result |= {f"{key}.{name}": entry for name, entry in inner.items()}
            else:
                result[key] = value
        return result
