"""The report of many items as Markdown or as one HTML file, and the page of errata as Markdown."""

import base64
import re
from collections.abc import Collection, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from torsor.base.documents import header, write_document
from torsor.base.files import replacing
from torsor.reproduce.errata import ERRATA
from torsor.reproduce.item import Kind, Result, Row, Verdict
from torsor.reproduce.registry import DOCUMENTS, deciding_test, percent

HEAD = ("what", "document", "ours", "difference", "verdict")
STYLE = (
    "body{font-family:sans-serif;max-width:75em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:.5em 0 1em;font-size:90%}"
    "td,th{border:1px solid #ccc;padding:.2em .5em;text-align:left;vertical-align:top;overflow-wrap:break-word}"
    "td{max-width:28em}th,td:nth-last-child(-n+2){white-space:nowrap}.legend td{max-width:none}h3{margin-top:2em}"
    "img{max-width:100%}.agrees{color:#1a7f37}.differs{color:#9a6700}.fails{color:#cf222e;font-weight:bold}"
)
INTRODUCTION = (
    "Every algorithm, table, figure and printed number of the five documents that Torsor implements: what the document "
    "prints beside what the library computes. Where a document prints equations and no numbers, its equations "
    "(corrected) are evaluated for a random robot. Differences of vectors are relative to their largest component."
)
LEGEND = {
    Verdict.AGREES: "ours rounds to the printed number, or equals the result of the printed equations to rounding",
    Verdict.DIFFERS: "it does not, and the reason is given",
    Verdict.MISSING: "the document lacks data that its results depend on; what could be chosen is compared",
    Verdict.DEFINES: "a sketch that defines symbols: there is nothing to compute",
    Verdict.FAILS: "ours is wrong, or the reason does not explain the difference",
}


def summary(results: Iterable[Result]) -> str:
    """Return how many items have each verdict, in words."""
    found = [each.verdict for each in results]
    parts = [f"{each.value}: {found.count(each)}" for each in Verdict if found.count(each)]
    skipped = found.count(None)
    return ", ".join([*parts, *([f"skipped: {skipped}"] if skipped else [])])


def write_report(path: Path, results: Sequence[Result], dpi: int = 60) -> list[Path]:
    """Write a report: .html with its figures inside, .md with a folder of figures, or .json; return the files."""
    if path.suffix.lower() == ".json":
        write_document(path, document(results))
        return [path]
    if path.suffix.lower() == ".html":
        write_text(path, _html(results, dpi + 30))  # one file, whose size matters less than that of a page of the docs
        return [path]
    folder, written = path.with_suffix(""), list[Path]()
    for each in results:
        if each.has_figure:
            folder.mkdir(exist_ok=True)
            picture = folder / figure_name(each)
            picture.write_bytes(each.png(dpi))
            written.append(picture)
    beside = {name for name in ("bibliography.md", "errata.md") if (path.parent / name).is_file()}
    write_text(path, _markdown(results, folder.name, beside))
    return [path, *written]


def document(results: Iterable[Result]) -> dict[str, Any]:
    """Return items with their rows as plain values, as for JSON."""
    items = [
        {
            "name": each.item.name,
            "document": each.item.document,
            "kind": each.item.kind.value,
            "title": each.item.title,
            "verdict": None if each.verdict is None else each.verdict.value,
            "because": each.because,
            "seconds": each.seconds,
            "rows": [dict(zip(("what", "printed", *HEAD[2:]), _cells(row), strict=True)) for row in each.rows],
        }
        for each in results
    ]
    return {"torsor": header("reproduce"), "units": {"seconds": "s"}, "items": items}


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def figure_name(result: Result) -> str:
    """Return the name of the file of a figure."""
    return f"{result.item.name.replace('/', '-')}.png"


def _cells(row: Row) -> tuple[str, ...]:
    return row.what, row.printed, row.ours, row.difference, "" if row.verdict is None else row.verdict.value


def _of(results: Sequence[Result], document: str, is_misprint: bool) -> list[Result]:
    return [
        each for each in results if each.item.document == document and (each.item.kind is Kind.MISPRINT) == is_misprint
    ]


def _bar(text: str) -> str:
    """Return the text of a cell, without what Markdown would take for marks."""
    return re.sub(r"([|*_\\])", r"\\\1", text.replace("\n", " "))


def _link(text: str, page: str, beside: Collection[str]) -> str:
    """Return a link to a page if it lies beside the report, as in the folder of the docs."""
    return f"[{text}]({page})" if page in beside else text


def _markdown(results: Sequence[Result], folder: str, beside: Collection[str]) -> str:
    lines = ["# The documents, reproduced", "", INTRODUCTION, ""]
    if beside:
        lines += ["`torsor reproduce --all --report docs/reproduce.md` writes this page."]
    lines += ["Times are those of the computer that wrote it.", ""]
    lines += ["| verdict | means | items | misprints |", "|---|---|---|---|"]
    counts = [
        [each.verdict for each in results if (each.item.kind is Kind.MISPRINT) == wrong] for wrong in (False, True)
    ]
    for state, words in LEGEND.items():
        lines.append(f"| {state.value} | {words} | {' | '.join(str(found.count(state)) for found in counts)} |")
    bibliography = _link("the bibliography", "bibliography.md", beside)
    for document in DOCUMENTS:
        own = _of(results, document.name, False)
        if not own:
            continue
        lines += [
            "",
            f"## {_upper(document.cited)}",
            "",
            f"{_upper(document.authors)}: {document.title}. See {bibliography}.",
        ]
        for each in own:
            lines += ["", *_item(each, folder)]
        wrong = _of(results, document.name, True)
        if wrong:
            clear = sum(each.verdict is Verdict.DIFFERS for each in wrong)
            decided = f"**Misprints:** {len(wrong)}, of which a computation decides {clear}"
            lines += ["", f"{decided}: {_link('errata', 'errata.md', beside)}."]
    return "\n".join([*lines, ""])


def _item(result: Result, folder: str) -> list[str]:
    item, state = result.item, _state(result)
    lines = [
        f"### {item.name}",
        "",
        f"{_upper(item.title)} ({item.place}): **{state}**. {_sentence(result.because)}".rstrip(),
    ]
    if result.outcome is not None and result.outcome.rows:
        lines += ["", f"| {' | '.join(HEAD)} |", "|---|---|---|---|---|"]
        lines += [f"| {' | '.join(map(_bar, _cells(row)))} |" for row in result.outcome.rows]
    if result.has_figure:
        lines += ["", f"![{item.title}]({folder}/{figure_name(result)})"]
    return lines


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _sentence(text: str) -> str:
    return f"{_upper(text)}." if text else ""


def _html(results: Sequence[Result], dpi: int) -> str:
    own = {each.name: (_of(results, each.name, False), _of(results, each.name, True)) for each in DOCUMENTS}
    shown = [each for each in DOCUMENTS if any(own[each.name])]
    parts = [f"<!doctype html><meta charset=utf-8><title>torsor reproduce</title><style>{STYLE}</style>"]
    parts += ["<h1>The documents, reproduced</h1>", f"<p>{escape(INTRODUCTION)}</p><p>{escape(summary(results))}</p>"]
    legend = (
        f"<tr><td class={_class(each)}>{each}</td><td>{escape(words)}</td></tr>" for each, words in LEGEND.items()
    )
    parts.append(f"<table class=legend>{''.join(legend)}</table>")
    parts += [f"<p>{_upper(escape(each.cited))}: {_contents(*own[each.name])}</p>" for each in shown]
    for each in shown:
        items, wrong = own[each.name]
        parts.append(
            f"<h2>{_upper(escape(each.cited))}</h2><p>{_upper(escape(each.authors))}: {escape(each.title)}</p>"
        )
        parts += [_html_item(result, dpi) for result in items]
        if wrong:
            rows = [row for result in wrong if result.outcome for row in result.outcome.rows]
            names = [result.item.place for result in wrong if result.outcome for _ in result.outcome.rows]
            parts.append(f'<h3 id="{each.name}/misprints">Misprints</h3>{_html_table(rows, names)}')
    return "\n".join(parts)


def _contents(items: Sequence[Result], wrong: Sequence[Result]) -> str:
    """Return links to the items of a document, each in the colour of its verdict."""
    links = [
        f'<a class={_class(_state(each))} href="#{each.item.name}">{each.item.name.partition("/")[2]}</a>'
        for each in items
    ]
    if wrong:
        links.append(f'<a href="#{wrong[0].item.document}/misprints">misprints ({len(wrong)})</a>')
    return ", ".join(links)


def _state(result: Result) -> str:
    return "skipped" if result.verdict is None else result.verdict.value


def _class(state: str) -> str:
    return (state or "none").split()[-1]


def _html_item(result: Result, dpi: int) -> str:
    item, state = result.item, _state(result)
    text = f'<h3 id="{item.name}">{item.name}</h3><p>{_upper(escape(item.title))} ({escape(item.place)}): '
    text += f"<b class={_class(state)}>{state}</b>. {escape(_sentence(result.because))}</p>"
    if result.outcome is not None and result.outcome.rows:
        text += _html_table(result.outcome.rows)
    if result.has_figure:
        image = base64.b64encode(result.png(dpi)).decode()
        text += f'<img alt="{escape(item.title)}" src="data:image/png;base64,{image}">'
    return text


def _html_table(rows: Sequence[Row], names: Sequence[str] | None = None) -> str:
    head = HEAD if names is None else ("place", *HEAD)
    lines = "".join(f"<th>{each}</th>" for each in head)
    body = ""
    for k, row in enumerate(rows):
        cells = _cells(row) if names is None else (names[k], *_cells(row))
        body += "<tr>" + "".join(f"<td>{escape(each)}</td>" for each in cells[:-1])
        body += f"<td class={_class(cells[-1])}>{escape(cells[-1])}</td></tr>"
    return f"<table><tr>{lines}</tr>{body}</table>"


def errata_page() -> str:
    """Return the page of errata as Markdown: every misprint, corrected, and the test that decides.

    Example:
        >>> errata_page().splitlines()[0]
        '# Errata of the documents'
    """
    lines = [
        "# Errata of the documents",
        "",
        f"{len(ERRATA)} misprints were found in the five documents that Torsor implements. Each has a test that "
        "evaluates both forms: the corrected one agrees with an independent result to 1e-9, the printed one does not. "
        "The error of the printed form is relative to the largest component, for a random robot; a statement that is "
        "wrong has 100 %. "
        "`torsor reproduce khalil/eq-57` prints one, `torsor reproduce --kind misprint` lists all, and "
        "`torsor reproduce --errata docs/errata.md` writes this page. `F` in the tests is short for "
        f"`{deciding_test(ERRATA[0]).partition('[')[0]}`.",
        "",
        "A printed form that cannot be evaluated, since a symbol is not defined or the dimensions do not match, is "
        "compared in the way that the corrected column says.",
    ]
    for document in DOCUMENTS:
        own = [each for each in ERRATA if each.name.startswith(f"{document.name}/")]
        lines += [
            "",
            f"## {_upper(document.cited)}",
            "",
            f"{_upper(document.authors)}: {document.title}. {len(own)} misprints.",
            "",
        ]
        lines += [
            "| where | as printed | corrected | error of the printed form | decided by | test |",
            "|---|---|---|---|---|---|",
        ]
        for each in own:
            cells = (each.place, each.printed, each.corrected, percent(each.decide().printed), each.truth)
            lines.append(f"| {' | '.join(map(_bar, cells))} | `F[{each.name}]` |")
    lines += [
        "",
        "## Right as printed",
        "",
        "| where | what looks wrong | why it is right |",
        "|---|---|---|",
        "| the Lie-algebra notes, 3.3 | `[ad_V]ᵀ` has minus signs | the transpose of a skew matrix is its negative |",
        "| Barman 2020, eqs. 3.93, 3.95 | a term with `R_{j,i}ᵀ e_z` | it is zero: `R_jᵀ e_z` does not depend on q_j |",
        "",
    ]
    return "\n".join(lines)
