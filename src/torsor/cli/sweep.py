"""``torsor sweep``: a study of many cases from a file."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from torsor.base.errors import ModelError
from torsor.base.startup import STOPPED
from torsor.cli.command import DONE, NONE, SWEPT, Command
from torsor.cli.outputs import check_output, print_paths, write_json

SHOWN = 5  # errors that are printed


def _add_arguments(parser: ArgumentParser) -> None:
    text = "a .toml file: problem, cases, output (docs/plan/sweep.md)"
    parser.add_argument("study", type=Path, metavar="STUDY", help=text)
    where = "file of the results: .sqlite, .db or .parquet (default: that of the study, or STUDY.sqlite)"
    parser.add_argument("--output", type=Path, metavar="FILE", help=where)
    workers = "processes on this machine, 0 for none but this one (default: that of the study, or one for each core)"
    parser.add_argument("--workers", type=int, metavar="N", help=workers)
    parser.add_argument("--cluster", metavar="ADDRESS", help="scheduler of dask.distributed, as tcp://host:8786")
    parser.add_argument("--resume", action="store_true", help="go on with results that are there")
    parser.add_argument("--retry-failed", action="store_true", help="with --resume, compute failed cases again")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table to this file too (.csv)")


def _run(arguments: Namespace, console: Console) -> int:
    check_output(arguments.csv, [".csv"])
    if arguments.workers is not None and arguments.cluster is not None:
        raise ModelError("--workers and --cluster are both given", where="sweep", allowed="one of them")
    if arguments.retry_failed and not arguments.resume:
        raise ModelError("--retry-failed without --resume", where="sweep", fix="give both")
    from torsor.motion.sweeps import load_study
    from torsor.motion.sweeps.results import STOPPED as WAS_STOPPED

    study = load_study(arguments.study)
    changes: dict[str, Any] = {"output": arguments.output or study.output or arguments.study.with_suffix(".sqlite")}
    changes |= {} if arguments.workers is None else {"workers": arguments.workers}
    changes |= {} if arguments.cluster is None else {"executor": arguments.cluster}
    found = study.run(resume=arguments.resume, retry_failed=arguments.retry_failed, **changes)
    missing = len(study.cases) - len(found)
    rest = f", {missing} not computed: --resume goes on" if missing else ""
    console.print(f"{len(study.cases)} cases: {found.done} done, {found.failed} failed{rest}")
    for number, text in list(found.errors().items())[:SHOWN]:
        console.print(f"case {number}: {escape(text)}", soft_wrap=True, highlight=False)
    if arguments.csv is not None:
        found.to_csv(arguments.csv)
    print_paths(console, found.path, arguments.csv)
    if arguments.json is not None:  # the table may be large
        write_json(arguments, console, found.to_dict())
    if found.status == WAS_STOPPED:
        return STOPPED
    return NONE if found.failed else DONE


_EXAMPLES = ("torsor sweep study.toml", "torsor sweep study.toml --resume --csv table.csv")
COMMAND = Command(_add_arguments, _run, SWEPT, _EXAMPLES)
