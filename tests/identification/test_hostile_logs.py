"""Hostile and odd logs: each mistake is named with its line and the fix, and nothing is guessed silently."""

import gzip
import warnings

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.base.errors import ModelWarning
from torsor.cli.main import main
from torsor.identification import LogMap, Measurements, first_look
from torsor.robot.state_tables import read_states

ARM = torsor.library.planar_chain(2)
HEAD = "time,q joint1,q joint2,tau joint1,tau joint2"
T = 0.01 * np.arange(60)
ROWS = [f"{t:.2f},{np.sin(9 * t):.6f},{np.cos(7 * t):.6f},{np.cos(5 * t):.6f},{np.sin(8 * t):.6f}" for t in T]
GOOD = "\n".join([HEAD, *ROWS])
NUMBERS = {"time": 0, "q": [1, 2], "tau": [3, 4]}
NAMES = {"time": "time", "q": ["q joint1", "q joint2"], "tau": ["tau joint1", "tau joint2"]}


def row(text: str, k: int = 9) -> str:
    return "\n".join([HEAD, *ROWS[:k], text, *ROWS[k + 1 :]])


def each(change) -> str:
    return "\n".join(change(line) for line in GOOD.splitlines())


def loaded(folder, content, columns=None) -> Measurements:
    path = folder / "log.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Measurements.load(path, ARM, columns, cutoff=20.0)


SAME = {
    "first line of only #": ("#\n" + GOOD, None),
    "comments before heads": ("# made by a drive\n# on Monday, at 9\n" + GOOD, None),
    "heads in a comment": ("# made by a drive\n# " + GOOD, None),
    "comments between rows": ("\n".join([HEAD, *ROWS[:20], "# pause", *ROWS[20:]]), None),
    "no heads": ("\n".join(ROWS), NUMBERS),
    "a comment and no heads": ("# hello, you\n" + "\n".join(ROWS), NUMBERS),
    "heads and numbers of columns": (GOOD, NUMBERS),
    "heads of pandas": (
        ",0,1,2,3,4\n" + "\n".join(f"{k},{line}" for k, line in enumerate(ROWS)),
        {"time": 1, "q": [2, 3], "tau": [4, 5]},
    ),
    "byte order mark": ("\ufeff" + GOOD, None),
    "semicolons": (GOOD.replace(",", ";"), None),
    "tabs": (GOOD.replace(",", "\t"), None),
    "quoted heads": (GOOD.replace(HEAD, ",".join(f'"{head}"' for head in HEAD.split(","))), None),
    "quoted numbers": (each(lambda line: ",".join(f'"{cell}"' for cell in line.split(","))), None),
    "delimiter at the end": (each(lambda line: line + ","), None),
    "spaces": (GOOD.replace(",", " , "), None),
    "line ends of Windows": (GOOD.replace("\n", "\r\n"), None),
    "line ends of old computers": (GOOD.replace("\n", "\r"), None),
}


@pytest.mark.parametrize("case", SAME)
def test_odd_layouts_have_the_same_samples(tmp_path, case):
    plain, found = loaded(tmp_path, GOOD), loaded(tmp_path, *SAME[case])
    assert np.array_equal(found.q, plain.q) and np.array_equal(found.tau, plain.tau)


DECIMAL_COMMAS = each(lambda line: line.replace(",", ";").replace(".", ","))
NO_NUMBER = "line 11, column 'q joint1': {}; allowed: a finite number with a decimal point; fix"
REFUSED = {
    "empty": ("", "a table with a header and rows of numbers"),
    "blank lines": ("\n \n\n", "it is empty"),
    "only comments": ("# a\n#\n", "column 'q joint1' is missing"),
    "heads alone": (HEAD, "it has no rows of numbers"),
    "one row": (HEAD + "\n" + ROWS[0], "measure longer"),
    "UTF-16": (GOOD.encode("utf-16"), "as UTF-8 text"),
    "UTF-16 without a mark": (GOOD.encode("utf-16-le"), "it is not a text file"),
    "Latin-1": (GOOD.replace("time", "time [µs]").encode("latin-1"), "it is not a text file"),
    "gzip": (gzip.compress(GOOD.encode()), "it is not a text file"),
    "a spreadsheet": (b"PK\x03\x04" + GOOD.encode(), "it is not a text file"),
    "binary": (bytes(range(256)), "it is not a text file"),
    "a very long line": (row("1" * 200_000), "line 11: field larger than field limit"),
    "decimal commas": (DECIMAL_COMMAS, "line 2: '0,00' has a decimal comma"),
    "decimal commas without heads": (DECIMAL_COMMAS.partition("\n")[2], "line 1: '0,00' has a decimal comma"),
    "only decimal commas": ("\n".join([HEAD, *(line.replace(".", ",") for line in ROWS)]), "line 2 has 10 columns"),
    "delimiter at the end of rows": ("\n".join([HEAD, *(line + "," for line in ROWS)]), "remove the delimiter"),
    "short row": (row("0.09,1,1"), "line 11 has 3 columns, but none for 'tau joint1'"),
    "long row": (row("0.09,1,1,1,1,1"), "line 11 has 6 columns, but the table has 5"),
    "unclosed quote": (row('0.09,"1,1,1,1'), "line 11 has 2 columns"),
    "1_0": (row("0.09,1_0,1,1,1"), "q joint1"),
    "digits of other scripts": (row("0.09,１,1,1,1"), "q joint1"),
    "complex": (row("0.09,1+2j,1,1,1"), "q joint1"),
    "a unit in a cell": (row("0.09,1 rad,1,1,1"), "q joint1"),
    "inf": (row("0.09,inf,1,1,1"), "line 11, column 'q joint1': 'inf' is not a number"),
    "nan": (row("0.09,nan,1,1,1"), "line 11, column 'q joint1': 'nan' is not a number"),
    "an empty cell": (row("0.09,,1,1,1"), "line 11, column 'q joint1': '' is not a number"),
    "#N/A": (row("0.09,#N/A,1,1,1"), "line 11, column 'q joint1': '#N/A' is not a number"),
    "1e300": (row("0.09,1e300,1,1,1"), "line 11, column 'q joint1': 1e+300 in SI units"),
    "time of 1e300": (row("1e300,1,1,1,1", 59), "line 61, column time: 1e+300 in SI units"),
    "heads again": (row(HEAD), "q joint1"),
    "heads twice": (GOOD.replace("q joint2", "q joint1"), "q joint1"),
    "time back": (row("0.07,1,1,1,1"), "line 11: the time does not increase: 0.07 s follows 0.08 s"),
    "a stamp twice": (row(ROWS[8]), "line 11: the time does not increase: 0.08 s follows 0.08 s"),
    "constant time": ("\n".join([HEAD, *("1" + line[4:] for line in ROWS)]), "(59 times in all)"),
    "time of nan": (row("nan,1,1,1,1"), "line 11, column 'time': 'nan' is not a number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_mistakes_of_a_file_are_named_with_line_and_fix(tmp_path, case):
    content, words = REFUSED[case]
    with refused(words):
        loaded(tmp_path, content)


def test_decimal_commas_in_tables_of_states_are_named(tmp_path):
    path = tmp_path / "motion.csv"
    path.write_text(DECIMAL_COMMAS)
    with refused(what="has a decimal comma", fix="decimal points"):
        read_states(path, ARM)


ROW_OR_HEADS = {
    "nan first": ("nan" + "\n".join(ROWS)[4:], "line 1, column 0: 'nan' is not a number"),
    "a word first": ("start,0,0,1,1\n" + "\n".join(ROWS), "line 1, column 0: 'start'"),
}


@pytest.mark.parametrize("case", ROW_OR_HEADS)
def test_a_first_row_is_not_taken_for_heads(tmp_path, case):
    content, words = ROW_OR_HEADS[case]
    with refused(words):
        loaded(tmp_path, content, NUMBERS)


def drives(**given):
    return {"drives": {"side": "motor", **given}}


MAPS = {
    "time is a list": ({"columns": {**NAMES, "time": [0]}}, "the time column is [0]"),
    "time is 1.5": ({"columns": {**NAMES, "time": 1.5}}, "the time column is 1.5"),
    "one column twice": ({"columns": {**NUMBERS, "tau": [1, 2]}}, "the column 1 is q and tau"),
    "column of no row": ({"columns": {**NUMBERS, "tau": [3, 9]}}, "counted from 0"),
    "negative column": ({"columns": {**NUMBERS, "tau": [3, -1]}}, "none for -1"),
    "no columns": ({"columns": None}, "columns"),
    "negative rate": ({"columns": {"q": [1, 2], "tau": [3, 4]}, "rate": -5.0}, "rate"),
    "rate of 1e300": ({"columns": {"q": [1, 2], "tau": [3, 4]}, "rate": 1e300}, "rate"),
    "rate of text": ({"columns": {"q": [1, 2], "tau": [3, 4]}, "rate": "fast"}, "rate"),
    "unit of another clock": (
        {"units": {"time": {"x": "ms"}}},
        "there is a unit of the time for 'x', which has no columns",
    ),
    "unit of a number": ({"units": {"q": 5}}, "the unit 5 of 'q'"),
    "three ratios": (drives(ratios=[1, 2, 3]), "ratios"),
    "ratios of words": (drives(ratios="many"), "ratios"),
    "a ratio of 0": (drives(ratios=[0, 1]), "use a nonzero ratio for each motor"),
    "a ratio of nan": (drives(ratios=[np.nan, 1]), "ratios"),
    "no ratios": (drives(), 'side = "motor" is given without ratios'),
    "ratios of nothing": (
        {"drives": {"side": "joint", "ratios": [9, 9]}},
        "gear ratios are given, but all signals are measured at the joints",
    ),
    "coupling of a joint with itself": (
        drives(ratios=[1, 1], coupling=[["joint1", "joint1", 5]]),
        "motor joint1 is coupled with itself",
    ),
    "singular coupling": (
        drives(ratios=[1, 1], coupling=[["joint1", "joint2", 1], ["joint2", "joint1", 1]]),
        "the gear ratio matrix is singular",
    ),
    "three torque constants": (
        {"columns": {"time": 0, "q": [1, 2], "current": [3, 4]}, "drives": {"torque_constants": [1, 2, 3]}},
        "torque_constants",
    ),
    "a torque constant of 0": (
        {"columns": {"time": 0, "q": [1, 2], "current": [3, 4]}, "drives": {"torque_constants": [0, 1]}},
        "torque_constants",
    ),
    "torque constants of torques": (
        {"drives": {"torque_constants": [1, 1]}},
        "there are torque constants, but no columns for 'current'",
    ),
    "infinite delay": ({"delay": np.inf}, "finite numbers"),
    "delimiter of a line end": ({"delimiter": "\n"}, "one character"),
    "file of a number": ({"files": {"tau": 5}}, "the file of 'tau' is 5"),
    "file that is not there": (
        {"files": {"tau": "no.csv"}},
        "a log: a table as text (.csv), or a saved trajectory (.npz)",
    ),
    "file of no name": ({"files": {"tau": "a\0b"}}, "its name"),
}


@pytest.mark.parametrize("case", MAPS)
def test_mistakes_of_a_map_are_named(tmp_path, case):
    change, words = MAPS[case]
    with refused(words):
        loaded(tmp_path, GOOD, LogMap(**{"columns": NAMES, **change}))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("map.json", '{"columns": {}, "columns": {}}', "the key 'columns' appears twice"),
        ("map.json", "[1]", "a table"),
        ("map.json", '{"columns": null}', "columns"),
        ("map.json", "[" * 100_000, "not valid JSON"),
        ("map.toml", "rate = 1\nrate = 2", "not valid TOML: Cannot overwrite a value"),
        ("map.yaml", "rate: 1\nrate: 2", "rate"),
        ("map.yaml", "columns: {q: [0], q: [1]}", "line 1: the key 'q' already appears in line 1"),
        ("map.yaml", "!!python/object/apply:os.system ['true']", "not valid YAML"),
        ("map.yaml", "? [1, 2]\n: 3", "not valid YAML"),
    ],
)
def test_hostile_map_files_are_refused(tmp_path, name, text, words):
    if name.endswith("yaml"):
        pytest.importorskip("yaml")
    (tmp_path / name).write_text(text)
    with refused(words):
        LogMap.load(tmp_path / name)


def test_the_command_ends_without_an_internal_error(tmp_path, capsys):
    """With and without --check: an error of the user (1) or findings (3), nothing else."""
    ARM.save(tmp_path / "arm.toml")
    log = tmp_path / "log.csv"
    for case in ("constant time", "time back", "one row", "1e300", "a very long line"):
        log.write_text(REFUSED[case][0])
        assert main(["identify", str(tmp_path / "arm.toml"), str(log), "--cutoff", "20"]) == 1
        assert main(["identify", str(tmp_path / "arm.toml"), str(log), "--check", "--cutoff", "20"]) in (1, 3)
    log.unlink()
    assert main(["identify", str(tmp_path / "arm.toml"), str(log), "--check"]) == 1
    assert main(["identify", str(tmp_path / "arm.toml"), str(tmp_path), "--check"]) == 1
    assert "internal error" not in capsys.readouterr().err


def test_steps_of_seconds_ask_for_milliseconds(tmp_path):
    slow = "\n".join([HEAD, *(f"{10 * k},{line[5:]}" for k, line in enumerate(ROWS))])
    with warned(what='write units = {time = "ms"}'):
        (tmp_path / "log.csv").write_text(slow)
        Measurements.load(tmp_path / "log.csv", ARM, cutoff=0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        right = Measurements.load(tmp_path / "log.csv", ARM, NAMES, units={"time": "ms"}, cutoff=20.0)
    assert right.times[1] - right.times[0] == pytest.approx(0.01)
    assert "time" in first_look(ARM, tmp_path / "log.csv", cutoff=0.02).kinds


def test_forces_whose_squares_underflow_are_looked_at():
    t = np.arange(300) * 0.01
    q = np.sin(np.outer(t, [3.0, 5.0]))
    tau = np.cos(np.outer(t, [4.0, 2.0])) * [1.0, 1e-300]
    assert "unexplained" in first_look(ARM, (t, q, tau), cutoff=5.0).kinds
