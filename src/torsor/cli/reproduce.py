"""``torsor reproduce``: what the five documents print, beside what the library computes."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from torsor.base.errors import ModelError
from torsor.base.startup import STOPPED
from torsor.cli.command import DONE, NONE, REPRODUCED, Command
from torsor.cli.outputs import check_folder, check_output, print_paths, write_json

if TYPE_CHECKING:
    from torsor.reproduce import Item, Result

KINDS = ("algorithm", "table", "figure", "number", "misprint")
COLOURS = {"agrees": "green", "differs": "yellow", "not reproducible": "cyan", "definition": "dim", "fails": "bold red"}
LONG = 5.0  # s above which it is said beforehand how long an item takes


def _add_arguments(parser: ArgumentParser) -> None:
    names = "items (barman/fig-4.7, khalil/eq-57) or documents (barman); without any, all items are listed"
    parser.add_argument("names", nargs="*", metavar="NAME", help=names)
    parser.add_argument("--all", action="store_true", help="compute all items")
    parser.add_argument("--quick", action="store_true", help="leave out items that take more than some seconds")
    parser.add_argument("--kind", choices=KINDS, help="only items of this kind")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="write the figures to this folder (PNG)")
    text = "write rows and figures: .html or .md; rows alone: .json"
    parser.add_argument("--report", type=Path, metavar="FILE", help=text)
    parser.add_argument("--errata", type=Path, metavar="FILE", help="write the page of all misprints: .md")


def _run(arguments: Namespace, console: Console) -> int:
    report: Path | None = arguments.report
    check_output(report, [".html", ".md", ".json"])
    check_output(arguments.errata, [".md"])
    check_folder(arguments.output)
    if report is not None and report.suffix.lower() == ".md":
        check_folder(report.with_suffix(""))  # of its figures
    from torsor.reproduce import errata_page, find, is_quick, summary, write_report
    from torsor.reproduce.report import document, write_text

    if arguments.errata is not None:
        write_text(arguments.errata, errata_page())
        print_paths(console, arguments.errata)
    if arguments.names and arguments.all:
        raise ModelError("names and --all are both given", where="reproduce", allowed="one of them")
    wanted = bool(arguments.names or arguments.all)
    if not wanted and any(each is not None for each in (arguments.report, arguments.output, arguments.json)):
        raise ModelError("there is nothing to write", where="reproduce", fix="name items, or give --all")
    items = [each for each in find(arguments.names, arguments.kind) if not arguments.quick or is_quick(each)]
    if not wanted:
        if arguments.errata is None:
            _list(items, arguments.kind, console)
        return DONE
    if not items:
        fix = "leave out --quick"
        raise ModelError("all of these items take longer than --quick allows", where="reproduce", fix=fix)
    results = list(_computed(items, console))
    if len(results) > 1:
        console.print(f"{len(results)} items: {summary(results)}")
    if arguments.output is not None:
        print_paths(console, *_draw(results, arguments.output))
    elif arguments.report is None and any(each.has_figure for each in results):
        console.print("--output FOLDER draws the figures", style="dim")
    if arguments.json is not None:
        write_json(arguments, console, document(results))
    if arguments.report is not None:
        print_paths(console, write_report(arguments.report, results)[0])
    if any(each.verdict is not None and each.verdict.value == "fails" for each in results):
        return NONE
    return STOPPED if results and all(each.verdict is None for each in results) else DONE


def _list(items: "Iterable[Item]", kind: str | None, console: Console) -> None:
    from torsor.reproduce import DOCUMENTS, Kind

    found = list(items)
    for document in DOCUMENTS:
        own = [each for each in found if each.document == document.name]
        shown = [each for each in own if each.kind is not Kind.MISPRINT or kind == "misprint"]
        if not shown:
            continue
        cited = f"{document.cited[0].upper()}{document.cited[1:]}"
        console.print(f"[bold]{escape(cited)}[/bold]: {escape(document.authors)}, {escape(document.title)}")
        table = Table()
        for head in ("name", "what and where", "kind", "seconds"):
            table.add_column(head, justify="right" if head == "seconds" else "left", no_wrap=head == "name")
        for each in shown:
            time = f"{each.seconds:g}" if not each.first else f"{each.seconds:g} ({each.first:g})"
            table.add_row(*map(escape, (each.name, f"{each.title} ({each.place})", each.kind.value, time)))
        console.print(table)
        if len(shown) < len(own):
            more = len(own) - len(shown)
            console.print(f"and {more} misprints: torsor reproduce {document.name} --kind misprint\n", style="dim")
    console.print("seconds: on one core, in brackets the first time on a machine", style="dim")
    console.print("torsor reproduce NAME computes an item, torsor reproduce --all all of them", style="dim")


def _computed(items: "Iterable[Item]", console: Console) -> "Iterable[Result]":
    """Compute items one after the other and print each."""
    from torsor.reproduce import run

    for each in items:
        if max(each.seconds, each.first) > LONG:
            first = f", {each.first:g} s the first time" if each.first else ""
            console.print(f"{each.name}: about {each.seconds:g} s{first}; Ctrl-C skips it", style="dim")
        with console.status(f"computing {escape(each.name)}"):  # in a terminal only
            result = run(each)
        _print(result, console)
        yield result


def _print(result: "Result", console: Console) -> None:
    item, state = result.item, "skipped" if result.verdict is None else result.verdict.value
    words = f"[bold]{escape(item.name)}[/bold]: {escape(item.title)} ({escape(item.place)}), "
    console.print(f"{words}[{COLOURS.get(state, 'dim')}]{state}[/], {result.seconds:.1f} s", soft_wrap=True)
    if result.outcome is not None and result.outcome.rows:
        table = Table()
        for head in ("what", "document", "ours", "difference", "verdict"):
            table.add_column(head, overflow="fold")
        for row in result.outcome.rows:
            verdict = "" if row.verdict is None else row.verdict.value
            colour = COLOURS.get(verdict, "default")
            table.add_row(*(escape(each) for each in row[:4]), f"[{colour}]{verdict}[/]" if verdict else "")
        console.print(table)
    if result.because:
        console.print(f"because: {escape(result.because)}", soft_wrap=True)


def _draw(results: "Iterable[Result]", folder: Path) -> list[Path]:
    from torsor.reproduce.report import figure_name

    folder.mkdir(exist_ok=True)
    pictures = {folder / figure_name(each): each for each in results if each.has_figure}
    for path, each in pictures.items():
        path.write_bytes(each.png())
    return list(pictures)


_EXAMPLES = ("torsor reproduce", "torsor reproduce khalil/eq-57", "torsor reproduce --all --quick --report out.html")
COMMAND = Command(_add_arguments, _run, REPRODUCED, _EXAMPLES)
