"""``torsor sweep``: solve the cases of a study file in parallel."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from torsor.base.errors import ModelError
from torsor.base.startup import STOPPED
from torsor.cli.command import DONE, NONE, SWEPT, Command
from torsor.cli.options import OutputFile, add_option
from torsor.cli.outputs import print_paths, write_json

MAX_ERRORS_SHOWN = 5


def _add_arguments(parser: ArgumentParser) -> None:
    text = "study file (.toml), which defines the problem, the cases and the output"
    parser.add_argument("study", type=Path, metavar="STUDY", help=text)
    details = ": .sqlite, .sqlite3, .db or .parquet. The default is the file named in the study, or STUDY.sqlite"
    suffixes = (".sqlite", ".sqlite3", ".db", ".parquet")
    add_option(parser, "--output", details, action=OutputFile, kind="target", suffixes=suffixes)
    details = ". The default is the number in the study, or one per core. With 0, only this process is used"
    add_option(parser, "--workers", details, type=int)
    text = "dask.distributed scheduler, such as tcp://host:8786"
    parser.add_argument("--cluster", metavar="ADDRESS", help=text)
    parser.add_argument("--resume", action="store_true", help="continue with existing results")
    parser.add_argument("--retry-failed", action="store_true", help="with --resume, solve failed cases again")
    text = "also write the table as .csv"
    parser.add_argument("--csv", action=OutputFile, suffixes=(".csv",), metavar="FILE", help=text)


def _run(arguments: Namespace, console: Console) -> int:
    if arguments.workers is not None and arguments.cluster is not None:
        raise ModelError("--workers and --cluster are both given", where="sweep", allowed="one of them")
    if arguments.retry_failed and not arguments.resume:
        raise ModelError("--retry-failed needs --resume", where="sweep", fix="add --resume")
    from torsor.motion.sweeps import load_study
    from torsor.motion.sweeps.results import STOPPED as WAS_STOPPED

    study = load_study(arguments.study)
    output = Path(arguments.output or study.output or arguments.study.with_suffix(".sqlite"))
    if output.is_file() and not arguments.resume:
        if not arguments.force:
            raise ModelError("the file exists", where=str(output), fix="--resume continues it, --force replaces it")
        output.unlink()
    changes: dict[str, Any] = {"output": output, "workers": arguments.workers, "executor": arguments.cluster}
    changes = {name: value for name, value in changes.items() if value is not None}
    results = study.run(resume=arguments.resume, retry_failed=arguments.retry_failed, **changes)
    missing = max(0, len(study.cases) - len(results))  # the file may have more cases
    rest = f", {missing} not solved: --resume continues" if missing else ""
    console.print(f"{len(study.cases)} cases: {results.done} done, {results.failed} failed{rest}")
    for number, text in list(results.errors().items())[:MAX_ERRORS_SHOWN]:
        console.print(f"case {number}: {escape(text)}", soft_wrap=True, highlight=False)
    if arguments.csv is not None:
        results.to_csv(arguments.csv)
    print_paths(console, results.path, arguments.csv)
    if arguments.json is not None:  # the table may be large
        write_json(arguments, console, results.to_dict())
    if results.status == WAS_STOPPED:
        return STOPPED
    return NONE if results.failed else DONE


_EXAMPLES = ("torsor sweep study.toml", "torsor sweep study.toml --resume --csv table.csv")
COMMAND = Command(_add_arguments, _run, SWEPT, _EXAMPLES)
