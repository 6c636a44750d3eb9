"""Export of results as CSV tables, and of motions as ROS JointTrajectory messages in JSON or YAML."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import positive
from torsor.base.errors import ModelError
from torsor.base.files import check_suffix, check_target, replacing, write_text


class Column(NamedTuple):
    """A column of a table: its name, its unit (1 for numbers, "" for words), and its values (N,).

    Example:
        >>> Column("q elbow", "rad", np.zeros(3)).head
        'q elbow [rad]'
    """

    name: str
    unit: str
    values: Any

    @property
    def head(self) -> str:
        """The header of the column."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def identifier(self) -> str:
        """The header with letters, digits and underscores only, for programs such as MATLAB.

        Example:
            >>> Column("tau elbow", "N m/kg", np.zeros(3)).identifier
            'tau_elbow_Nm_per_kg'
        """
        unit = "" if self.unit == "1" else self.unit
        for symbol, word in (("N m", "Nm"), ("/", " per "), ("%", "percent")):
            unit = unit.replace(symbol, word)
        return re.sub(r"\W+", "_", f"{self.name} {unit}".strip())


def columns_of(letter: str, names: Sequence[str], units: Sequence[str], values: Any) -> list[Column]:
    """Return the columns of an array (N, names).

    Example:
        >>> [each.head for each in columns_of("q", ["a", "b"], ["rad", "m"], np.zeros((3, 2)))]
        ['q a [rad]', 'q b [m]']
    """
    rows = np.asarray(values).reshape(-1, len(names)).T
    return [Column(f"{letter} {name}", unit, row) for name, unit, row in zip(names, units, rows, strict=True)]


def write_table(path: Path, columns: Sequence[Column], plain: bool = False) -> None:
    """Write a table atomically; numbers are written with full precision. With ``plain``, headers are identifiers.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_table(Path(folder, "x.csv"), [Column("time", "s", np.array([0.0, 0.1]))])
        ...     Path(folder, "x.csv").read_text().split()
        ['time', '[s]', '0.0', '0.1']
    """
    check_target(path)
    values = [column.values.tolist() if isinstance(column.values, np.ndarray) else column.values for column in columns]
    with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([column.identifier if plain else column.head for column in columns])
        writer.writerows([x if isinstance(x, str) else repr(x) for x in row] for row in zip(*values, strict=True))


POINT_SUFFIXES = (".json", ".yaml", ".yml")
NANO = 1_000_000_000
MAX_INSTANTS = 10_000_000  # maximum number of instants in a file


def instants(duration: float, rate: float) -> Array:
    """Return times (N,), in s, from 0 to ``duration`` in steps of 1 / rate; the last step may be shorter.

    Example:
        >>> instants(1.0, 4.0).tolist(), instants(0.5, 4.5).round(3).tolist()
        ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.222, 0.444, 0.5])
    """
    whole = int(np.floor(duration * rate * (1 + 1e-12)))
    times = np.arange(whole + 1) / rate
    return np.append(times, duration) if times[-1] < duration * (1 - 1e-9) else times


def check_rate(rate: float, duration: float, where: str) -> float:
    """Return a rate (Hz); raise ModelError if it results in too many samples for a file.

    Example:
        >>> check_rate(1e12, 2.0, "motion.csv")
        Traceback (most recent call last):
        torsor.ModelError: motion.csv: rate is 1e+12 Hz, which requires 2e+12 samples; allowed: 10000000 samples \
or fewer; fix: lower the rate to 5e+06 Hz or less
    """
    rate = positive(rate, where, "rate")
    if rate * duration > MAX_INSTANTS:
        message = f"is {rate:g} Hz, which requires {rate * duration:g} samples"
        fix = f"lower the rate to {MAX_INSTANTS / duration:g} Hz or less"
        raise ModelError(message, argument="rate", where=where, allowed=f"{MAX_INSTANTS} samples or fewer", fix=fix)
    return rate


def write_points(path: Path, names: Sequence[str], times: Array, motion: tuple[Array, Array, Array]) -> None:
    """Write q, v, a (N, n) at ``times`` (N,), in s, to a .json or .yaml file atomically.

    Numbers have nine decimal places. Both files contain JSON, which YAML readers also accept.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "points.json")
        ...     write_points(file, ["elbow"], np.array([0.0, 1.5]), (np.eye(2)[:, :1],) * 3)
        ...     json.loads(file.read_text())["points"][1]["time_from_start"]
        {'sec': 1, 'nanosec': 500000000}
    """
    check_suffix(path, POINT_SUFFIXES)
    check_target(path)
    points = ",\n".join(_point(t, *rows) for t, rows in zip(times.tolist(), zip(*motion, strict=True), strict=True))
    head = '{"header": {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""},\n'
    text = f'{head}"joint_names": {json.dumps(list(names))},\n"points": [\n{points}\n]}}\n'
    write_text(path, text)


def _point(t: float, q: Array, v: Array, a: Array) -> str:
    parts = [("positions", q), ("velocities", v), ("accelerations", a)]
    numbers = ", ".join(f'"{name}": [{", ".join(f"{x + 0.0:.9f}" for x in row)}]' for name, row in parts)
    nanoseconds = round(t * NANO)
    return f'{{{numbers}, "time_from_start": {{"sec": {nanoseconds // NANO}, "nanosec": {nanoseconds % NANO}}}}}'
