"""Reports on many items as Markdown or HTML, and the errata page as Markdown."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from torsor.base.documents import header, write_document
from torsor.base.files import replacing
from torsor.base.html_report import html_table, html_text, image, write_html
from torsor.reproduce.errata import ERRATA
from torsor.reproduce.item import Kind, Result, Row, Verdict
from torsor.reproduce.registry import DOCUMENTS, Document, deciding_test, percent

TITLE = "The papers, reproduced"
HEAD = ("what", "document", "ours", "difference", "predicted", "verdict")
MARKDOWN_HEAD = ("what", "document", "ours (difference)", "predicted", "verdict")
COLOURS = {"agrees": "#1a7f37", "differs": "#9a6700", "fails": "#cf222e"}
INTRODUCTION = (
    "This page compares every algorithm, table, figure and printed number of the five documents that Torsor implements "
    "with the result of the library. Where a document prints equations but no numbers, its corrected equations are "
    "evaluated for a random robot. Differences of vectors are relative to the largest component."
)
NUMBERED = re.compile(r"(Fig\.|Figure|Table) \S+")  # a place that the name of an item repeats: "hua/fig-3"
AGREEING = "Items that agree list what was compared, with the largest difference."
LEGEND = {
    Verdict.AGREES: "our value rounds to the printed one, or equals the result of the printed equations up to rounding",
    Verdict.DIFFERS: "our value differs, and the reason is given",
    Verdict.MISSING: "the document lacks data for its results; the comparison uses chosen data",
    Verdict.DEFINES: "a sketch that defines symbols, without numbers",
    Verdict.FAILS: "our value is wrong, or the reason does not explain the difference",
}


def summary(results: Iterable[Result]) -> str:
    """Return a sentence with the number of items per verdict."""
    verdicts = [result.verdict for result in results]
    parts = [f"{verdict.value}: {verdicts.count(verdict)}" for verdict in Verdict if verdicts.count(verdict)]
    skipped = verdicts.count(None)
    return ", ".join([*parts, *([f"skipped: {skipped}"] if skipped else [])])


def write_report(path: Path, results: Sequence[Result], dpi: int = 60) -> list[Path]:
    """Write a report as .html, as .md with a folder of figures (``dpi``), or as .json, and return the files."""
    if path.suffix.lower() == ".json":
        write_document(path, document(results))
        return [path]
    if path.suffix.lower() == ".html":
        return [write_html(path, TITLE, _html(results))]
    folder, written = path.with_suffix(""), list[Path]()
    for result in results:
        if result.has_figure:
            folder.mkdir(exist_ok=True)
            picture = folder / figure_name(result)
            picture.write_bytes(result.png(dpi))
            written.append(picture)
    beside = {name for name in ("bibliography.md", "errata.md") if (path.parent / name).is_file()}
    write_text(path, _markdown(results, folder.name, beside))
    return [path, *written]


def document(results: Iterable[Result]) -> dict[str, Any]:
    """Return items with their rows as plain values, suitable for JSON."""
    items = [
        {
            "name": result.item.name,
            "document": result.item.document,
            "kind": result.item.kind.value,
            "title": result.item.title,
            "verdict": None if result.verdict is None else result.verdict.value,
            "because": result.because,
            "seconds": result.seconds,
            "rows": [dict(zip(("what", "printed", *HEAD[2:]), cells(row), strict=True)) for row in result.rows],
        }
        for result in results
    ]
    return {"torsor": header("reproduce"), "units": {"seconds": "s"}, "items": items}


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def figure_name(result: Result) -> str:
    """Return the file name of a figure."""
    return f"{result.item.name.replace('/', '-')}.png"


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row, in the order of ``HEAD``."""
    state = "" if row.verdict is None else row.verdict.value
    return row.what, row.printed, row.ours, row.difference, row.predicted, state


def _markdown_cells(row: Row) -> tuple[str, ...]:
    what, printed, ours, difference, *others = cells(row)
    return what, printed, ours if difference in ("", "0") else f"{ours} ({difference})", *others


def _compared(rows: Sequence[Row]) -> str:
    """Return what was compared, with the largest difference; each percentage follows its quantity."""
    compared = [f"{row.what}, {row.difference}" if "%" in row.difference else row.what for row in rows]
    differences = [abs(float(row.difference)) for row in rows if row.difference and "%" not in row.difference]
    largest = max(differences, default=0.0)
    return f"{'; '.join(compared)}: {largest:.1e}" if largest else "; ".join(compared)


def _grouped(results: Sequence[Result]) -> Iterator[tuple[Document, list[Result], list[Result]]]:
    """Yield each document that has results, with the results of its items and of its misprints."""
    for each in DOCUMENTS:
        document_results = [result for result in results if result.item.document == each.name]
        wrong = [result for result in document_results if result.item.kind is Kind.MISPRINT]
        if document_results:
            yield each, [result for result in document_results if result not in wrong], wrong


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _about(document: Document) -> str:
    return f"{_upper(document.authors)}: {document.title}."


def _state(result: Result) -> str:
    return "skipped" if result.verdict is None else result.verdict.value


def _because(result: Result) -> str:
    return f" {_upper(result.because)}." if result.because else ""


def _bar(text: str) -> str:
    """Return the text of a cell, with Markdown characters escaped."""
    return re.sub(r"([|*_\\])", r"\\\1", text.replace("\n", " "))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table, preceded by an empty line."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return ["", lines[0], f"|{'---|' * len(head)}", *lines[1:]]


def _markdown(results: Sequence[Result], folder: str, beside: Collection[str]) -> str:
    def link(text: str, page: str) -> str:  # if the page lies beside the report, as in the folder of the docs
        return f"[{text}]({page})" if page in beside else text

    lines = [f"# {TITLE}", "", f"{INTRODUCTION} {AGREEING}", ""]
    if beside:
        lines += ["`torsor reproduce --all --report docs/theory/reproduce.md` writes this page."]
    lines += ["`torsor reproduce NAME` prints all values of an item."]
    if "bibliography.md" in beside:
        lines += ["The [bibliography](bibliography.md) lists the documents."]
    counts = [
        [each.verdict for each in results if (each.item.kind is Kind.MISPRINT) == wrong] for wrong in (False, True)
    ]
    rows = [[state.value, words, *(str(found.count(state)) for found in counts)] for state, words in LEGEND.items()]
    lines += _table(("verdict", "meaning", "items", "misprints"), rows)
    first_item = dict[str, str]()  # by reason: several items often share one
    for each, items, wrong in _grouped(results):
        lines += ["", f"## {_upper(each.cited)}"]
        if "bibliography.md" not in beside:
            lines += ["", _about(each)]
        for result in items:
            item = result.item
            because = _because(result)
            if because and (first := first_item.setdefault(because, item.name)) != item.name:
                because = f" Reason: see {first}."
            place = "" if NUMBERED.fullmatch(item.place) else f" ({item.place})"
            where = f"{_upper(item.title)}{place}: **{_state(result)}**.{because}"
            lines += ["", f"### {item.name}", "", where]
            if result.verdict is Verdict.AGREES:
                if item.kind is not Kind.TABLE or any(row.difference for row in result.rows):
                    lines += ["", f"{_bar(_compared(result.rows))}."]
            elif result.rows:
                lines += _table(MARKDOWN_HEAD, (list(map(_bar, _markdown_cells(row))) for row in result.rows))
            if result.has_figure:
                lines += ["", f"![{item.title}]({folder}/{figure_name(result)})"]
        if wrong:
            lines += ["", f"{len(wrong)} misprints: {link('errata', 'errata.md')}."]
    return "\n".join([*lines, ""])


def _html(results: Sequence[Result]) -> list[str]:
    """Return the parts of the page: a legend, links to the items, and the items of each document."""
    legend = [[_coloured(state.value), html_text(words)] for state, words in LEGEND.items()]
    parts = [f"<h1>{TITLE}</h1>", f"<p>{html_text(INTRODUCTION)}</p><p>{html_text(summary(results))}</p>"]
    parts.append(html_table(("verdict", "meaning"), legend, words=True))
    groups = list(_grouped(results))
    for each, items, wrong in groups:
        names = [(result.item.name, _state(result)) for result in items]
        links = [f'<a href="#{name}">{_coloured(state, name.partition("/")[2])}</a>' for name, state in names]
        links += [f'<a href="#{each.name}/misprints">misprints ({len(wrong)})</a>'] if wrong else []
        parts.append(f"<p>{_upper(html_text(each.cited))}: {', '.join(links)}</p>")
    for each, items, wrong in groups:
        parts.append(f"<h2>{_upper(html_text(each.cited))}</h2><p>{html_text(_about(each))}</p>")
        for result in items:
            item = result.item
            parts.append(f'<h3 id="{item.name}">{item.name}</h3><p>{_upper(html_text(item.title))} ')
            parts[-1] += f"({html_text(item.place)}): {_coloured(_state(result))}.{html_text(_because(result))}</p>"
            if result.rows:
                parts.append(html_table(HEAD, [_html_cells(row) for row in result.rows], words=True))
            if result.has_figure:
                parts.append(image(result.figure()))
        if wrong:
            rows = [[html_text(result.item.place), *_html_cells(row)] for result in wrong for row in result.rows]
            parts.append(f'<h3 id="{each.name}/misprints">Misprints</h3>')
            parts.append(html_table(("place", *HEAD), rows, words=True))
    return parts


def _html_cells(row: Row) -> list[str]:
    *texts, state = cells(row)
    return [*map(html_text, texts), _coloured(state)]


def _coloured(state: str, text: str = "") -> str:
    """Return a verdict, or text in its colour."""
    return f'<b style="color:{COLOURS.get(state, "inherit")}">{text or state}</b>'


def errata_page() -> str:
    """Return the errata page as Markdown: every misprint, its correction and the deciding test.

    Example:
        >>> errata_page().splitlines()[0]
        '# Errata of the documents'
    """
    lines = [
        "# Errata of the documents",
        "",
        "This page is for readers of the five documents that Torsor implements. They contain "
        f"{len(ERRATA)} known misprints. A test evaluates both forms "
        "of each: the corrected form agrees with an independent result to 1e-9, and the printed form does not. Errors "
        "of the printed forms are relative to the largest component, for a random robot; a wrong statement has an "
        "error of 100 %. If a printed form cannot be evaluated, the corrected column states what is compared. "
        f"`F` in the test column stands for `{deciding_test(ERRATA[0]).partition('[')[0]}`.",
        "",
        "`torsor reproduce khalil/eq-57` prints one misprint, `torsor reproduce --kind misprint` lists all, and "
        "`torsor reproduce --errata docs/theory/errata.md` writes this page.",
    ]
    for document in DOCUMENTS:
        misprints = [erratum for erratum in ERRATA if erratum.name.startswith(f"{document.name}/")]
        lines += ["", f"## {_upper(document.cited)}"]
        rows = []
        for each in misprints:
            cells = (each.place, each.printed, each.corrected, percent(each.decide().printed), each.truth)
            rows.append([*map(_bar, cells), f"`F[{each.name}]`"])
        head = ("where", "as printed", "corrected", "error", "decided by", "test")
        lines += _table(head, rows)
    right = (
        ("the Lie-algebra notes, 3.3", "`[ad_V]ᵀ` has minus signs", "the transpose of a skew matrix is its negative"),
        (
            "Barman 2020, eqs. 3.93, 3.95",
            "a term with `R_{j,i}ᵀ e_z`",
            "the term is zero: `R_jᵀ e_z` does not depend on q_j",
        ),
    )
    lines += ["", "## Correct as printed", *_table(("where", "what looks wrong", "why it is correct"), right), ""]
    return "\n".join(lines)
