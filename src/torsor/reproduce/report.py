"""Reports on many items as Markdown or HTML, and the errata page as Markdown."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from torsor.base.documents import header, write_document
from torsor.base.files import check_suffix, data_of, replacing, write_text
from torsor.base.html_report import html_table, html_text, image, write_html
from torsor.reproduce.errata import ERRATA, Erratum
from torsor.reproduce.errata.erratum import MAX_CORRECTED_ERROR, Category
from torsor.reproduce.item import Basis, Item, Kind, Result, Row, Verdict, power
from torsor.reproduce.registry import DOCUMENTS, EDITORIAL, TEST, Document, percent

TITLE = "Reproduced papers"
HEAD = ("what", "document", "ours", "difference", "predicted", "verdict")
MARKDOWN_HEAD = ("quantity", "document", "Torsor", "predicted")
TEXTS = data_of(__name__)
COLOURS = {"agrees": "#1a7f37", "differs": "#9a6700", "fails": "#cf222e"}
NUMBERED = re.compile(r"(Fig\.|Figure|Table) \S+")  # a place that the name of an item repeats: "hua/fig-3"
EQUATIONS = re.compile(r", eqs?\. (\d+(?:\.\d+)?(?:(?:, | to )\d+(?:\.\d+)?)*)(?=;|\.(?!\d)| \(|$)")  # after a quantity
COMPARED = (Basis.NUMBER, Basis.EQUATION, Basis.PROPERTY)


def summary(results: Sequence[Result]) -> str:
    """Return a sentence with the number of items per verdict, and of rows per kind of comparison."""
    verdicts = [result.verdict for result in results]
    parts = [f"{verdict.value}: {verdicts.count(verdict)}" for verdict in Verdict if verdicts.count(verdict)]
    skipped = verdicts.count(None)
    found = [row.basis for result in results for row in result.rows]
    rows = ", ".join(f"{basis.value}: {found.count(basis)}" for basis in COMPARED if basis in found)
    return ", ".join([*parts, *([f"skipped: {skipped}"] if skipped else [])]) + (f"; rows: {rows}" if rows else "")


def write_report(path: Path | str, results: Sequence[Result], dpi: int = 60) -> list[Path]:
    """Write a report as .html, as .md with a folder of figures (``dpi``), or as .json, and return the file paths."""
    path = Path(path)
    check_suffix(path, (".html", ".md", ".json"))
    if path.suffix.lower() == ".json":
        write_document(path, document(results))
        return [path]
    if path.suffix.lower() == ".html":
        return [write_html(path, TITLE, _html(results))]
    folder = path.with_suffix("")
    written = write_figures(folder, results, dpi)
    beside = {name for name in ("bibliography.md", "errata.md") if (path.parent / name).is_file()}
    write_text(path, _markdown(results, folder.name, beside))
    return [path, *written]


def write_figures(folder: Path, results: Iterable[Result], dpi: int = 100) -> list[Path]:
    """Write the figures of results to a folder as .png, and return their paths. All are drawn before any is written."""
    pictures = {folder / figure_name(result.item): result.png(dpi) for result in results if result.has_figure}
    if pictures:
        folder.mkdir(exist_ok=True)
    for path, content in pictures.items():
        with replacing(path) as part:
            part.write_bytes(content)
    return list(pictures)


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


def figure_name(item: Item) -> str:
    """Return the file name of the figure of an item."""
    return f"{item.name.replace('/', '-')}.png"


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row, in the order of ``HEAD``."""
    state = "" if row.verdict is None else row.verdict.value
    return row.what, row.printed, row.ours, row.difference, row.predicted, state


def _markdown_cells(row: Row, state: Verdict | None) -> tuple[str, ...]:
    """Return the cells of a row in the order of ``MARKDOWN_HEAD``; ``state`` is the verdict of its item."""
    notes = row.difference if row.difference != "0" else "", row.verdict if row.verdict is not state else ""
    note = ", ".join(filter(None, notes))
    ours = f"{row.ours} ({note})" if note else row.ours
    return row.what, row.printed, ours, "" if row.predicted == row.printed else row.predicted


def _markdown_rows(rows: Iterable[Row], state: Verdict | None) -> list[list[str]]:
    """Return the cells of rows. A value that the document does not print joins the row whose name it continues."""
    lines = list[list[str]]()
    for row in rows:
        cells = list(map(_bar, _markdown_cells(row, state)))
        start = f"{lines[-1][0]}, " if lines else ""
        if start and row.verdict is None and cells[0].startswith(start):
            lines[-1][2] += f"; {cells[0].removeprefix(start)}: {cells[2]}"
        else:
            lines.append(cells)
    return lines


def without_empty(head: Sequence[str], lines: Iterable[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Return the head and lines of a table, without the column of predicted values if that is empty."""
    kept, at = [list(line) for line in lines], head.index("predicted")
    if any(line[at] for line in kept):
        return list(head), kept
    return [*head[:at], *head[at + 1 :]], [[*line[:at], *line[at + 1 :]] for line in kept]


def _is_equal(row: Row) -> bool:
    """Return whether a row shows two equal values, or values that agree within a bound."""
    return row.verdict is Verdict.AGREES and (row.printed == row.ours or row.difference.startswith("below "))


def _agreeing(rows: Iterable[Row]) -> str:
    """Return the agreeing quantities, sorted by bound, in sentences such as "Below 1e-12: forces; moments"."""
    by_bound = dict[str, list[Row]]()
    for row in rows:
        bound = row.difference.removeprefix("below ") if row.difference.startswith("below ") else ""
        by_bound.setdefault(bound, []).append(row)
    bounds = sorted(by_bound, key=lambda bound: float(bound or "inf"))
    heads = [f"Below {bound}: " if bound else "Others: " if len(bounds) > 1 else "" for bound in bounds]
    text = " ".join(f"{head}{_compared(by_bound[bound])}." for head, bound in zip(heads, bounds, strict=True))
    return EQUATIONS.sub(r" (\1)", text)


def _compared(rows: Sequence[Row]) -> str:
    """Return the compared quantities, each followed by its percentage if it has one.

    Names with the same beginning (up to a comma) or the same ending are grouped: "a, b (2; 6 joints)".
    """
    begins = [row.what.partition(", ")[0] for row in rows]
    by_begin = dict[str, list[str]]()
    for row, begin in zip(rows, begins, strict=True):
        key = begin if begins.count(begin) > 1 else row.what
        texts = [row.what.removeprefix(key).removeprefix(", "), row.difference if "%" in row.difference else ""]
        by_begin.setdefault(key, []).append(", ".join(filter(None, texts)))
    by_end = dict[str, list[str]]()
    for begin, ends in by_begin.items():
        by_end.setdefault(f" ({'; '.join(filter(None, ends))})" if any(ends) else begin, []).append(begin)
    return "; ".join(f"{', '.join(names)}{end}" if end != names[0] else end for end, names in by_end.items())


def _grouped(results: Sequence[Result]) -> Iterator[tuple[Document, list[Result], list[Result]]]:
    """Yield each document that has results, with the results of its items and of its errata."""
    for each in DOCUMENTS:
        document_results = [result for result in results if result.item.document == each.name]
        wrong = [result for result in document_results if result.item.kind is Kind.ERRATUM]
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
    r"""Return the text of a cell, with Markdown characters escaped except in mathematics, such as $[a][b]$.

    Example:
        >>> print(_bar("[a][b] = $[c][d]$"))
        \[a\]\[b\] = $[c][d]$
    """
    parts = re.split(r"(\$[^$]+\$)", text.replace("\n", " "))
    return "".join(part if k % 2 else re.sub(r"([|*_\\\[\]])", r"\\\1", part) for k, part in enumerate(parts))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table, preceded by an empty line."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return ["", lines[0], f"|{'---|' * len(head)}", *lines[1:]]


def _markdown(results: Sequence[Result], folder: str, beside: Collection[str]) -> str:
    def link(text: str, page: str) -> str:  # if the page is next to the report, as in docs/theory
        return f"[{text}]({page})" if page in beside else text

    lines = [f"# {TITLE}", "", f"{TEXTS['introduction']} {TEXTS['agreeing']}", ""]
    if beside:
        lines += ["`torsor reproduce --all --report docs/theory/reproduce.md` writes this page."]
    lines += ["`torsor reproduce NAME` prints all values of an item."]
    if "bibliography.md" in beside:
        lines += ["The [bibliography](bibliography.md) lists the documents."]
    lines += _counts(results)
    first = dict[str, Result]()  # by reason: several items often share one
    for each, items, wrong in _grouped(results):
        lines += ["", f"## {_upper(each.cited)}"]
        if "bibliography.md" not in beside:
            lines += ["", _about(each)]
        for result in items:
            lines += ["", f"### {result.item.name}", "", *_item_lines(result, first)]
            if result.has_figure:
                lines += ["", f"![{result.item.name}]({folder}/{figure_name(result.item)})"]
        if wrong:
            lines += ["", f"{link('Errata', 'errata.md')}: {len(wrong)}."]
    return "\n".join([*lines, ""])


def _item_lines(result: Result, first: dict[str, Result]) -> Iterator[str]:
    """Yield the lines of an item. ``first`` contains the first result with each reason, and is extended.

    Items with the same reason refer to the first of them, and omit its rows.
    """
    item, because, shown = result.item, _because(result), tuple[Row, ...]()
    first.setdefault(because, result)
    for reason, other in first.items():
        if reason and other is not result and because.startswith(reason):
            because, shown = f" See {other.item.name}.{because.removeprefix(reason)}", tuple(other.rows)
            break
    agrees = result.verdict is Verdict.AGREES
    equal = [row for row in result.rows if _is_equal(row) or (agrees and row.verdict)]
    others = [row for row in result.rows if not agrees and row not in (*equal, *shown)]
    place = "" if NUMBERED.fullmatch(item.place) else f" ({item.place})"
    is_listed = bool(equal) and (item.kind is not Kind.TABLE or any(row.difference for row in equal))
    state = "" if agrees and is_listed else f": **{_state(result)}**"
    yield f"{_upper(item.title)}{place}{state}.{_bar(because)}"
    if is_listed:
        listed = _agreeing(equal)
        intro = "" if agrees else "These values agree. " if listed.startswith("Below ") else "These values agree: "
        yield from ("", f"{intro}{_bar(listed)}")
    lines = _markdown_rows(others, result.verdict)
    if len(lines) == 1:
        ((what, printed, ours, predicted),) = lines
        texts = f"Document: {printed}." if printed else "", f"Predicted: {predicted}." if predicted else ""
        yield from ("", " ".join(filter(None, [f"*{what}*.", *texts, f"Torsor: {ours}."])))
    elif lines:
        yield from _table(*without_empty(MARKDOWN_HEAD, lines))


def _counts(results: Sequence[Result]) -> list[str]:
    """Return the table of items, errata and rows per verdict."""
    items = [result for result in results if result.item.kind is not Kind.ERRATUM]
    errata = [result.verdict for result in results if result.item.kind is Kind.ERRATUM]
    rows = [(row.verdict, row.basis) for result in items for row in result.rows]
    lines = []
    for state in Verdict:
        found = [sum(result.verdict is state for result in items), *(rows.count((state, basis)) for basis in COMPARED)]
        counts = [*found, errata.count(state)]
        if any(counts):
            lines.append([state.value, TEXTS["verdicts"][state.value], *map(str, counts)])
    head = ("verdict", "meaning", "items", *(f"compared {basis.value}" for basis in COMPARED), "errata")
    return _table(head, lines)


def _html(results: Sequence[Result]) -> list[str]:
    """Return the parts of the page: a legend, links to the items, and the items of each document."""
    legend = [[_coloured(state), html_text(words)] for state, words in TEXTS["verdicts"].items()]
    parts = [f"<h1>{TITLE}</h1>", f"<p>{html_text(TEXTS['introduction'])}</p><p>{html_text(summary(results))}</p>"]
    parts.append(html_table(("verdict", "meaning"), legend, words=True))
    groups = list(_grouped(results))
    for each, items, wrong in groups:
        names = [(result.item.name, _state(result)) for result in items]
        links = [f'<a href="#{name}">{_coloured(state, name.partition("/")[2])}</a>' for name, state in names]
        links += [f'<a href="#{each.name}/errata">errata ({len(wrong)})</a>'] if wrong else []
        parts.append(f"<p>{_upper(html_text(each.cited))}: {', '.join(links)}</p>")
    for each, items, wrong in groups:
        parts.append(f"<h2>{_upper(html_text(each.cited))}</h2><p>{html_text(_about(each))}</p>")
        for result in items:
            item = result.item
            parts.append(f'<h3 id="{item.name}">{item.name}</h3><p>{_upper(html_text(item.title))} ')
            parts[-1] += f"({html_text(item.place)}): {_coloured(_state(result))}.{html_text(_because(result))}</p>"
            if result.rows:
                parts.append(html_table(*without_empty(HEAD, map(_html_cells, result.rows)), words=True))
            if result.has_figure:
                parts.append(image(result.figure()))
        if wrong:
            rows = [[html_text(result.item.place), *_html_cells(row)] for result in wrong for row in result.rows]
            parts.append(f'<h3 id="{each.name}/errata">Errata</h3>')
            parts.append(html_table(*without_empty(("place", *HEAD), rows), words=True))
    return parts


def _html_cells(row: Row) -> list[str]:
    *texts, state = cells(row)
    return [*map(html_text, texts), _coloured(state)]


def _coloured(state: str, text: str = "") -> str:
    """Return the verdict ``state``, or ``text`` if given, as HTML in the colour of the verdict."""
    return f'<b style="color:{COLOURS.get(state, "inherit")}">{text or state}</b>'


def errata_page() -> str:
    """Return the errata page as Markdown: every erratum, its correction and the test that decides it.

    Example:
        >>> errata_page().splitlines()[0]
        '# Errata in the documents'
    """
    counts = [
        (name, words, str(sum(each.category == name for each in ERRATA))) for name, words in TEXTS["classes"].items()
    ]
    editorial = sum(each.decide is None for each in ERRATA)
    lines = [
        "# Errata in the documents",
        "",
        TEXTS["errata"].format(count=len(ERRATA)),
        *_table(("class", "meaning", "count"), counts),
        "",
        TEXTS["checks"].format(editorial=editorial, kind=EDITORIAL, test=TEST, error=power(MAX_CORRECTED_ERROR)),
        "",
        "`torsor reproduce --errata docs/theory/errata.md` writes this page.",
    ]
    for document in DOCUMENTS:
        rows = [_erratum_cells(each) for each in ERRATA if each.name.startswith(f"{document.name}/")]
        head = ("name", "as printed", "corrected", "error, compared with")
        lines += ["", f"## {_upper(document.cited)}", *_table(head, rows)]
    right = [list(map(_bar, row)) for row in TEXTS["right"]]
    lines += ["", "## Correct as printed", *_table(("where", "what looks wrong", "why it is correct"), right), ""]
    return "\n".join(lines)


def _erratum_cells(erratum: Erratum) -> list[str]:
    """Return the cells of an erratum, without its place if the name contains it, as in "khalil/eq-57"."""
    short = erratum.name.partition("/")[2].replace("-", " ", 1).replace("eq ", "eq. ")
    place = erratum.place.removeprefix(short).lstrip(", ")
    category = "" if erratum.category is Category.MISPRINT else f"({erratum.category.value})"
    error = EDITORIAL if erratum.decide is None else f"{percent(erratum.decide().printed)}, {erratum.truth}"
    where = " ".join(filter(None, (f"`{erratum.name}`", _bar(place), category)))
    return [where, *map(_bar, (erratum.printed, erratum.corrected, error))]
