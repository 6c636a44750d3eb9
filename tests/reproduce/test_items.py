"""Every item of the documents agrees, or differs for a reason that explains the difference."""

import math
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from torsor.base.errors import ModelError
from torsor.cli.main import main
from torsor.reproduce import (
    DOCUMENTS,
    ITEMS,
    Item,
    Kind,
    Outcome,
    Verdict,
    basis_of,
    find,
    is_quick,
    run,
    summary,
    write_report,
)
from torsor.reproduce.item import claim, lacking, number, numbers, only, same, verdict, zero
from torsor.reproduce.report import cells

ROOT = Path(__file__).parents[2]
INSTANT = [each for each in ITEMS if max(each.seconds, each.first) <= 0.5 and each.kind is not Kind.ERRATUM]
LATER = [each for each in ITEMS if each not in INSTANT and each.kind is not Kind.ERRATUM]


ROUNDING_ERROR = re.compile(r"(?<!below )\b\d(\.\d+)?e-(09|1\d|2\d)|\b0e\+00")  # digits that computers do not share


@pytest.mark.parametrize("item", INSTANT, ids=lambda each: each.name)
def test_an_item_does_not_fail(item: Item) -> None:
    result = run(item)
    assert result.verdict not in (None, Verdict.FAILS), result.outcome
    assert basis_of(item) is result.basis, f"the basis in registry.toml should be {result.basis.value!r}"
    shown = [cell for row in result.rows for cell in cells(row)]
    assert not [cell for cell in shown if ROUNDING_ERROR.search(cell)], "show a bound: zero() or same()"
    if result.has_figure:
        assert result.png(50).startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("item", LATER, ids=lambda each: each.name)
def test_a_long_item_does_not_fail(item: Item) -> None:
    test_an_item_does_not_fail(item)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".html", ".md"])
def test_the_command_writes_a_report_of_all_items(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    assert main(["reproduce", "--all", "--report", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert all(each.name in text for each in ITEMS if each.kind is not Kind.ERRATUM)
    pictures = text.count("data:image/png") if suffix == ".html" else len(list((tmp_path / "out").glob("*.png")))
    assert pictures > 15


def test_the_page_of_the_documents_has_all_items_and_none_fails() -> None:
    page = (ROOT / "docs" / "theory" / "reproduce.md").read_text(encoding="utf-8")
    listed = re.findall(r"^### (\S+)$", page, flags=re.MULTILINE)
    missing = "write it again: torsor reproduce --all --report docs/theory/reproduce.md"
    assert listed == [each.name for each in ITEMS if each.kind is not Kind.ERRATUM], missing
    assert not [word for word in ("**fails**", "**skipped**", "(fails)") if word in page]
    for picture in re.findall(r"\]\((reproduce/.*?)\)", page):
        assert (ROOT / "docs" / "theory" / picture).is_file()


def test_names_are_unique_and_every_document_has_algorithms_or_tables_and_errata() -> None:
    names = [each.name for each in ITEMS]
    assert len(set(names)) == len(names)
    for document in DOCUMENTS:
        kinds = {each.kind for each in ITEMS if each.document == document.name}
        assert {Kind.ALGORITHM, Kind.ERRATUM} <= kinds
        assert document.authors in (ROOT / "docs" / "theory" / "bibliography.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("prefix", "count"),
    [
        ("barman/fig", 14),
        ("barman/table", 4),
        ("guarino/fig", 1),
        ("guarino/table", 3),
        ("khalil/fig", 4),
        ("hua/fig", 8),
        ("hua/table", 1),
    ],
)
def test_all_figures_and_tables_of_a_document_are_there(prefix: str, count: int) -> None:
    own = [each for each in ITEMS if each.name.startswith(f"{prefix}-") and each.kind is not Kind.ERRATUM]
    assert len(own) == count


# Names


def test_an_item_is_found_by_its_name_with_or_without_the_year() -> None:
    assert find(["khalil-2010/five-bar"]) == find(["khalil/five-bar"]) == find(["KHALIL/five-bar"])
    assert [each.name for each in find(["guarino"], "table")] == [
        "guarino/table-1",
        "guarino/table-2",
        "guarino/table-3",
    ]


def test_an_unknown_name_is_refused_with_names_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "barman/fig-9"]) == 1
    said = capsys.readouterr().err
    assert "no item 'barman/fig-9'" in said and "barman/fig-2.1" in said


# The command


def test_without_names_the_command_lists_all_items(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    listed = capsys.readouterr().out
    assert all(each.name in listed for each in ITEMS if each.kind is not Kind.ERRATUM)
    assert "28 errata" in listed and "Mohammad Poursina" in listed
    assert "7 items, by what they compare: printed numbers 1, equations 6" in listed
    assert main(["reproduce", "--kind", "erratum"]) == 0
    listed = capsys.readouterr().out
    assert all(each.name in listed for each in ITEMS if each.kind is Kind.ERRATUM)


def test_the_command_prints_what_the_document_has_beside_ours(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, page = tmp_path / "figures", tmp_path / "page.html"
    names = ["guarino/table-3", "lie/two-link", "khalil/eq-57"]
    assert main(["reproduce", *names, "--output", str(folder), "--report", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "because: a quintic cannot have zero" in shown and "differs" in shown
    assert "3 items: agrees: 1, differs: 2" in shown
    assert [each.name for each in folder.iterdir()] == ["guarino-table-3.png"]
    text = page.read_text(encoding="utf-8")
    assert (
        text.count("data:image/png;base64,") == 1
        and "Γ_c = Γ_a" in text
        and "http:" not in text
        and "https:" not in text
    )


def test_a_report_needs_items_and_a_known_suffix(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", "--report", str(tmp_path / "page.html")]) == 1
    assert "name items, or add --all" in capsys.readouterr().err
    assert main(["reproduce", "--all", "--report", str(tmp_path / "page.pdf")]) == 1
    assert "allowed: .html, .md" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "--all", "--output", str(tmp_path / "file")]) == 1
    assert "this is a file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["lie", "--kind", "figure"], "'lie' has no figure; allowed: algorithm, erratum, table"),
        (["barman/fig-5.4", "--quick"], "--quick skips all of these items; fix: omit --quick"),
        (["lie/orders", "--all"], "names and --all are both given"),
    ],
)
def test_options_that_leave_no_item_or_contradict_names_are_refused(options, words, capsys) -> None:
    assert main(["reproduce", *options]) == 1
    assert words in " ".join(capsys.readouterr().err.split())


def test_an_item_that_fails_makes_the_command_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = Item("lie/wrong", "two and two", Kind.NUMBER, "page 1", lambda: Outcome([number("sum", "5", 2 + 2)]))
    broken = Item("lie/broken", "nothing", Kind.NUMBER, "page 2", lambda: Outcome([number("ratio", "1", 1 / 0)]))
    monkeypatch.setattr("torsor.reproduce.registry.ITEMS", (wrong, broken))
    for name in ("lie/wrong", "lie/broken"):
        assert main(["reproduce", name]) == 3
        assert "fails" in capsys.readouterr().out


def test_ctrl_c_skips_an_item(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ctrl_c: object
) -> None:
    def stop() -> Outcome:
        ctrl_c()  # type: ignore[operator]
        return Outcome([])

    slow = Item("lie/slow", "a long item", Kind.NUMBER, "page 1", stop, seconds=100)
    quick = Item("lie/quick", "a quick item", Kind.NUMBER, "page 2", lambda: Outcome([number("sum", "4", 2 + 2)]))
    monkeypatch.setattr("torsor.reproduce.registry.ITEMS", (slow, quick))
    assert not is_quick(slow)
    assert main(["reproduce", "--all"]) == 0
    shown = capsys.readouterr().out
    assert "about 100 s; Ctrl-C skips it" in shown and "skipped: 1" in shown and "agrees: 1" in shown
    assert main(["reproduce", "lie/slow"]) == 130
    assert main(["reproduce", "--all", "--quick"]) == 0
    assert "slow" not in capsys.readouterr().out.splitlines()[-1]


def test_ctrl_c_twice_stops_the_command_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ctrl_c: object, tmp_path: Path
) -> None:
    items = [Item(f"lie/{k}", "slow", Kind.NUMBER, "page 1", ctrl_c) for k in range(9)]  # type: ignore[arg-type]
    monkeypatch.setattr("torsor.reproduce.registry.ITEMS", tuple(items))
    monkeypatch.setattr("torsor.cli.reproduce.sleep", lambda seconds: ctrl_c())  # type: ignore[operator]
    assert main(["reproduce", "--all", "--report", str(tmp_path / "page.html")]) == 130
    shown = capsys.readouterr().out
    assert shown.count("skipped") == 1 and "Press Ctrl-C again to stop" in shown and not list(tmp_path.iterdir())


def test_wrong_arguments_are_refused_before_anything_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for names in (["lie/two-link", "--all"], ["lie/none"], ["lie", "--kind", "figure"]):
        assert main(["reproduce", *names, "--errata", str(tmp_path / "errata.md")]) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("option", "target"), [("--report", "page.md"), ("--output", "page")])
def test_figures_that_exist_are_kept_without_force(option, target, tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "page").mkdir()
    picture = tmp_path / "page" / "khalil-fig-1.png"
    picture.write_text("mine")
    monkeypatch.setattr("torsor.cli.reproduce._computed", lambda *_: pytest.fail("it is computed"))
    assert main(["reproduce", "khalil/fig-1", option, str(tmp_path / target)]) == 1
    assert "khalil-fig-1.png: the file exists; fix: --force replaces it" in " ".join(capsys.readouterr().err.split())
    assert picture.read_text() == "mine" and not (tmp_path / "page.md").exists()


@pytest.mark.parametrize(("option", "target"), [("--report", "page.html"), ("--output", "page")])
def test_without_matplotlib_figures_are_refused_before_anything_is_computed(
    option, target, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setattr("torsor.base.figures.shown_figure", lambda: __import__("no_such_matplotlib"))
    monkeypatch.setattr("torsor.cli.reproduce._computed", lambda *_: pytest.fail("it is computed"))
    assert main(["reproduce", "khalil/fig-1", option, str(tmp_path / target)]) == 1
    assert "figures need matplotlib" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_python_functions_refuse_wrong_types_with_words(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="the names are the string 'khalil'"):
        find("khalil")
    with pytest.raises(ModelError, match="there is no kind 'figur'; allowed: algorithm, table"):
        find([], "figur")
    with pytest.raises(ModelError, match="'lie/two-link' is not an item"):
        run("lie/two-link")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"allowed: \.html, \.md, \.json"):
        write_report(tmp_path / "page.pdf", [])
    assert write_report(str(tmp_path / "page.json"), []) == [tmp_path / "page.json"]


# Verdicts


def item(**settings: str) -> Item:
    return Item("lie/x", "x", Kind.NUMBER, "page 1", lambda: Outcome([]), **settings)


def test_a_number_agrees_within_half_of_its_last_digit() -> None:
    assert number("T", "0.392", 0.39249).verdict is Verdict.AGREES
    assert number("T", "0.392", 0.39251).verdict is Verdict.FAILS
    assert number("e", "2.462e-2", 0.024622).verdict is Verdict.AGREES
    assert number("n", "330", 330).verdict is Verdict.AGREES
    assert number("n", "330", 331).verdict is Verdict.FAILS


def test_a_difference_needs_a_reason_that_predicts_the_printed_number() -> None:
    rows = [number("T", "1.0", 1.2, "s", predicted=1.04)]
    assert rows[0].predicted == "1.04 s"
    assert rows[0].verdict is Verdict.DIFFERS
    assert verdict(item(), Outcome(rows)) is Verdict.FAILS
    assert verdict(item(reason="another computer"), Outcome(rows)) is Verdict.DIFFERS
    assert verdict(item(missing="masses"), Outcome(rows)) is Verdict.MISSING
    assert number("T", "1.0", 1.2, predicted=1.06).verdict is Verdict.FAILS
    assert number("T", "1.0", 1.2, predicted=1.06, tolerance=0.1).verdict is Verdict.DIFFERS


def test_rows_of_vectors_and_statements() -> None:
    assert same("x", [1.0, 2.0], [1.0, 2.0 + 1e-9]).verdict is Verdict.FAILS
    assert numbers("x", ["1", "2"], [1.0, 2.1]).verdict is Verdict.FAILS
    assert claim("x", "yes", "no", False, predicted=True).verdict is Verdict.DIFFERS
    assert claim("x", "yes", "no", False, predicted=False).verdict is Verdict.FAILS
    assert verdict(item(), Outcome([lacking("x", "1", "2")])) is Verdict.FAILS
    assert verdict(item(missing="masses"), Outcome([lacking("x", "1", "2")])) is Verdict.MISSING


@pytest.mark.parametrize(
    "row",
    [
        lambda: same("x", [], []),
        lambda: same("x", [1.0, 1.0], [1.0]),
        lambda: same("x", [[1.0], [1.0]], [1.0, 1.0]),
        lambda: same("x", np.array([1.0]), np.array([1.0 + 1j])),
        lambda: same("x", [1.0], [9.0], tolerance=10.0),
        lambda: zero("x", []),
        lambda: zero("x", [1.0], size=-1.0),
        lambda: zero("x", [1.0], size=math.inf),
        lambda: numbers("x", [], []),
        lambda: numbers("x", ["1", "1"], [1.0]),
        lambda: claim("x", "yes", "yes", math.nan),  # type: ignore[arg-type]
        lambda: claim("x", "yes", "no", False, predicted="maybe"),  # type: ignore[arg-type]
    ],
)
def test_a_row_without_a_comparison_of_equal_shapes_is_refused(row) -> None:
    with pytest.raises(ModelError, match="allowed: "):
        row()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_fail(value: float) -> None:
    rows = [same("x", [1.0, 2.0], [1.0, value]), same("x", [1.0, value], [1.0, value]), zero("x", [0.0, value])]
    rows += [number("x", "1.0", value), numbers("x", ["1"], [value]), numbers("x", ["inf"], [value])]
    assert [row.verdict for row in rows] == [Verdict.FAILS] * 6


def test_a_difference_from_zeros_is_absolute() -> None:
    assert same("x", [0.0, 0.0], [0.0, 1e-3]).verdict is Verdict.FAILS
    assert number("x", "0", 1e-3).verdict is Verdict.FAILS


def test_only_a_figure_may_compare_nothing() -> None:
    nothing, sketch = Outcome([only("x", "1")]), Outcome([], lambda figure: None)
    assert verdict(item(), nothing) is verdict(item(missing="masses"), nothing) is Verdict.FAILS
    assert verdict(item(), sketch) is Verdict.FAILS
    figure = Item("lie/fig", "x", Kind.FIGURE, "page 1", lambda: sketch)
    assert verdict(figure, sketch) is Verdict.DEFINES and verdict(figure, nothing) is Verdict.FAILS


def test_an_item_that_returns_no_rows_fails() -> None:
    result = run(Item("lie/x", "x", Kind.NUMBER, "page 1", lambda: None))  # type: ignore[arg-type, return-value]
    assert result.verdict is Verdict.FAILS and "TypeError" in result.rows[0].ours


def test_a_report_in_markdown_names_what_agrees_by_bound_and_repeats_no_reason_or_row(tmp_path: Path) -> None:
    rows = [same("Γ, eq. 1", 1.0, 1.0), same("Γ, eq. 2", 1.0, 1.0), same("Γ, eq. 3", 1.0, 1.0), same("A", 1, 1, 1e-3)]
    rows += [claim("shape", "round", "oval", False, True), only("shape, tilted", "flat"), lacking("T", "1 s", "2 s")]
    first = Item("lie/a", "a", Kind.NUMBER, "page 1", lambda: rows, missing="no masses")
    second = Item("lie/b", "b", Kind.NUMBER, "page 2", lambda: [rows[-1], rows[4]], missing="no masses. Nor lengths")
    page = write_report(tmp_path / "page.md", [run(first), run(second)])[0].read_text(encoding="utf-8")
    assert "These values agree. Below 1e-12: Γ (eq. 1; eq. 2; eq. 3). Below 1e-3: A.\n" in page
    assert "| shape | round | oval (differs); tilted: flat |\n| T | 1 s | 2 s |\n" in page
    assert "B (page 2): **not reproducible**. See lie/a. Nor lengths.\n" in page and page.count("| T |") == 1


def test_a_report_in_markdown_has_a_folder_of_figures(tmp_path: Path) -> None:
    written = write_report(tmp_path / "page.md", [run(each) for each in find(["guarino/table-3", "lie/orders"])])
    assert [each.name for each in written] == ["page.md", "guarino-table-3.png"]
    page = written[0].read_text(encoding="utf-8")
    assert "![guarino/table-3](page/guarino-table-3.png)" in page
    assert "](bibliography.md)" not in page  # no such page lies beside it
    (tmp_path / "bibliography.md").write_text("")
    write_report(tmp_path / "page.md", [run(each) for each in find(["lie/orders"])])
    assert "](bibliography.md)" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_a_report_counts_items_errata_and_rows_by_what_they_compare(tmp_path: Path) -> None:
    names = ["guarino/table-3", "lie/orders", "khalil/eq-57", "khalil/eq-13"]
    results = [run(each) for each in find(names)]
    page = write_report(tmp_path / "page.md", results)[0].read_text(encoding="utf-8")
    counts = dict(re.findall(r"^\| (agrees|differs) \|.*?((?: \| \d+){5}) \|$", page, flags=re.MULTILINE))
    assert counts == {"agrees": " | 0 | 5 | 5 | 0 | 0", "differs": " | 2 | 0 | 0 | 2 | 2"}
    assert summary(results) == "differs: 4; rows: printed numbers: 5, equations: 6, properties: 3"


def test_the_contents_of_a_report_in_html_lead_to_its_items(tmp_path: Path) -> None:
    names = ["lie/orders", "khalil/fig-1", "khalil/eq-57"]
    (path,) = write_report(tmp_path / "page.html", [run(each) for each in find(names)])
    page = path.read_text(encoding="utf-8")
    links = re.findall(r'href="#(.*?)"', page)
    assert links == ["lie/orders", "khalil/fig-1", "khalil/errata"]
    assert all(f'id="{each}"' in page for each in links)
    assert "<h2>The Lie-algebra notes</h2>" in page and "fails</b></td>" in page  # the legend


def test_the_rate_that_the_notes_call_zero_is_not_said_to_agree() -> None:
    outcome = run(find(["lie/orders"])[0]).outcome
    assert outcome is not None
    states = {row.what: row.verdict for row in outcome.rows}
    differs = states.pop("ω'_2 if θ'' = 0")
    assert len(states) == 7 and differs is Verdict.DIFFERS and set(states.values()) == {Verdict.AGREES}


# Rounding

# Environments that change the instructions of NumPy and OpenBLAS, and thereby their rounding, as another computer does.
OTHER_ROUNDING = {
    "x86_64": {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512_SKX AVX2 FMA3"},
    "aarch64": {"OPENBLAS_CORETYPE": "ARMV8"},
}
ROWS = """
import sys
import numpy as np
from torsor.reproduce import errata_page, find, run
A, B = np.random.default_rng(0).normal(size=(2, 6, 6))
print(np.linalg.solve(A @ B, B).tobytes().hex())
print(errata_page())
for item in find(sys.argv[1:]):
    print(item.name, *(tuple(row) for row in run(item).rows), sep="\\n")
"""


@pytest.mark.slow
def test_rows_are_the_same_with_other_rounding() -> None:
    names = [each.name for each in ITEMS if is_quick(each) and each.kind is not Kind.ERRATUM]
    command, known = [sys.executable, "-W", "ignore", "-c", ROWS, *names], platform.machine() in OTHER_ROUNDING
    other = OTHER_ROUNDING[platform.machine()] if known else pytest.skip("no other instructions are known here")
    (here, *rows), (there, *others) = (
        subprocess.run(command, env=os.environ | extra, capture_output=True, text=True, check=True).stdout.splitlines()
        for extra in ({}, other)
    )
    if here == there:
        pytest.skip("both sets of instructions round alike here")
    assert rows == others


def test_a_row_has_a_bound_instead_of_digits_that_depend_on_rounding() -> None:
    rng, x = np.random.default_rng(0), np.array([3.0, -2.0, 1e-17])
    for _ in range(100):
        near = x * (1 + 1e-14 * rng.uniform(-1, 1, 3)) + 1e-16 * rng.uniform(-1, 1, 3)
        assert same("x", x, near) == same("x", x, x)
        assert numbers("x", ["3", "-2", "0"], near) == numbers("x", ["3", "-2", "0"], x)
        assert number("x", "3.0", near[0]) == number("x", "3.0", 3.0)
        assert zero("x", near[2]) == zero("x", 0.0)
