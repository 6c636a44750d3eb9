"""``torsor reproduce``: compare the printed results of the five documents with computed ones."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from torsor.base.errors import ModelError
from torsor.base.figures import new_figure
from torsor.base.files import write_text
from torsor.base.progress import working
from torsor.base.startup import STOPPED
from torsor.cli.command import DONE, NONE, REPRODUCED, Command
from torsor.cli.options import OutputFile, add_option
from torsor.cli.outputs import check_folder, check_new, print_paths, write_files, write_json

if TYPE_CHECKING:
    from torsor.reproduce import Item, Result

KINDS = ("algorithm", "table", "figure", "number", "erratum")
COLOURS = {"agrees": "green", "differs": "yellow", "not reproducible": "cyan", "definition": "dim", "fails": "bold red"}
LONG_TIME = 5.0  # s above which the expected time of an item is printed
PAUSE = 1.0  # s after a skipped item, in which Ctrl-C stops the command


def _add_arguments(parser: ArgumentParser) -> None:
    text = "item (khalil/eq-57) or document (barman). Without a name, all items are listed"
    parser.add_argument("names", nargs="*", metavar="NAME", help=text)
    add_option(parser, "--all", " items", action="store_true")
    parser.add_argument("--quick", action="store_true", help="skip items that take more than a few seconds")
    text = f"only items of one kind. Kinds: {', '.join(KINDS)}"
    parser.add_argument("--kind", choices=KINDS, metavar="KIND", help=text)
    details = ": a folder for the figures (.png)"
    add_option(parser, "--output", details, action=OutputFile, kind="folder", metavar="FOLDER")
    add_option(parser, "--report", "; also .md and .json", action=OutputFile, suffixes=(".html", ".md", ".json"))
    text = "write the list of errata (.md)"
    parser.add_argument("--errata", action=OutputFile, suffixes=(".md",), metavar="FILE", help=text)


def _run(arguments: Namespace, console: Console) -> int:
    is_selected = bool(arguments.names or arguments.all)
    if arguments.names and arguments.all:
        raise ModelError("names and --all are both given", where="reproduce", allowed="one of them")
    if not is_selected and any((arguments.report, arguments.output, arguments.json)):
        raise ModelError("no items are given", where="reproduce", fix="name items, or add --all")
    with working("loading the items"):
        from torsor.reproduce import errata_page, find, is_quick, summary, write_report
        from torsor.reproduce.report import document, write_figures

    items = [item for item in find(arguments.names, arguments.kind) if not arguments.quick or is_quick(item)]
    if not items:
        raise ModelError("--quick skips all of these items", where="reproduce", fix="omit --quick")
    if is_selected:
        _check_figures(items, arguments)
    if arguments.errata is not None:
        with working("evaluating the errata"):
            write_text(arguments.errata, errata_page())
        print_paths(console, arguments.errata)
    if not is_selected:
        if arguments.errata is None:
            _list(items, arguments.kind, console)
        return DONE
    results = list(_computed(items, console))
    if len(results) > 1:
        console.print(f"{len(results)} items: {summary(results)}")
    if arguments.output is not None:
        with working("drawing the figures"):
            drawn = write_figures(arguments.output, results)
        print_paths(console, *drawn)
    elif arguments.report is None and any(result.has_figure for result in results):
        console.print("Add --output FOLDER to draw the figures", style="dim")
    if arguments.json is not None:
        write_json(arguments, console, document(results))
    write_files(console, (arguments.report, lambda path: write_report(path, results)))
    if any(result.verdict is not None and result.verdict.value == "fails" for result in results):
        return NONE
    return STOPPED if all(result.verdict is None for result in results) else DONE


def _check_figures(items: "Iterable[Item]", arguments: Namespace) -> None:
    """Raise ModelError if figures cannot be drawn, or would replace files without ``--force``."""
    from torsor.reproduce.report import figure_name

    report: Path | None = arguments.report
    folders = [arguments.output] if arguments.output else []
    if report is not None and report.suffix.lower() == ".md":
        folders.append(report.with_suffix(""))
        check_folder(folders[-1])
    if folders or (report is not None and report.suffix.lower() == ".html"):
        new_figure(1.0, 1.0)  # raises an error without matplotlib
    check_new(arguments, *(folder / figure_name(item) for folder in folders for item in items))


def _list(items: "Iterable[Item]", kind: str | None, console: Console) -> None:
    from torsor.reproduce import DOCUMENTS, Basis, Kind, basis_of

    listed = list(items)
    for document in DOCUMENTS:
        items_of_document = [item for item in listed if item.document == document.name]
        shown = [item for item in items_of_document if item.kind is not Kind.ERRATUM or kind == "erratum"]
        if not shown:
            continue
        cited = f"{document.cited[0].upper()}{document.cited[1:]}"
        console.print(f"[bold]{escape(cited)}[/bold]: {escape(document.authors)}, {escape(document.title)}")
        table = Table()
        for head in ("name", "title (place)", "kind", "seconds"):
            table.add_column(head, justify="right" if head == "seconds" else "left", no_wrap=head == "name")
        for item in shown:
            time = f"{item.seconds:g} ({item.first:g})" if item.first > item.seconds else f"{item.seconds:g}"
            table.add_row(*map(escape, (item.name, f"{item.title} ({item.place})", item.kind.value, time)))
        console.print(table)
        compared = [basis_of(item) for item in shown]
        counts = ", ".join(f"{each.value} {compared.count(each)}" for each in Basis if each in compared)
        console.print(f"{len(shown)} items, by what they compare: {counts}", style="dim")
        if len(shown) < len(items_of_document):
            more = len(items_of_document) - len(shown)
            console.print(f"{more} errata: torsor reproduce {document.name} --kind erratum\n", style="dim")
    console.print("Times are in seconds on one core; those in brackets are for the first run.", style="dim")
    console.print("torsor reproduce NAME computes one item, torsor reproduce --all computes every item.", style="dim")


def _computed(items: "Sequence[Item]", console: Console) -> "Iterable[Result]":
    """Compute items in turn and print each result. Ctrl-C skips an item; pressed again, it stops the command."""
    from torsor.reproduce import run

    for item in items:
        if max(item.seconds, item.first) > LONG_TIME:
            first = f", {item.first:g} s the first time" if item.first > item.seconds else ""
            console.print(f"{item.name}: about {item.seconds:g} s{first}; Ctrl-C skips it", style="dim")
        with working(f"computing {item.name}"):
            result = run(item)
        _print(result, console)
        if result.verdict is None and item is not items[-1]:
            console.print("Press Ctrl-C again to stop", style="dim")
            sleep(PAUSE)
        yield result


def _print(result: "Result", console: Console) -> None:
    from torsor.reproduce.report import HEAD, cells, without_empty

    item, state = result.item, "skipped" if result.verdict is None else result.verdict.value
    words = f"[bold]{escape(item.name)}[/bold]: {escape(item.title)} ({escape(item.place)}), "
    console.print(f"{words}[{COLOURS.get(state, 'dim')}]{state}[/], {result.seconds:.1f} s", soft_wrap=True)
    if result.outcome is not None and result.outcome.rows:
        table = Table()
        heads, lines = without_empty(HEAD, map(cells, result.outcome.rows))
        for head in heads:
            table.add_column(head, overflow="fold")
        for *texts, verdict in lines:
            table.add_row(*map(escape, texts), f"[{COLOURS[verdict]}]{verdict}[/]" if verdict else "")
        console.print(table)
    if result.because:
        console.print(f"because: {escape(result.because)}", soft_wrap=True)


_EXAMPLES = ("torsor reproduce", "torsor reproduce khalil/eq-57", "torsor reproduce --all --quick --report out.html")
COMMAND = Command(_add_arguments, _run, REPRODUCED, _EXAMPLES)
