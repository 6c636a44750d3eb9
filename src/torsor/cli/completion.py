"""``torsor completion``: a script that completes the commands and options of ``torsor`` in a shell."""

from argparse import ArgumentParser, Namespace

from rich.console import Console

from torsor.cli.command import Command
from torsor.errors import missing

SHELLS = ("bash", "zsh", "tcsh")


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that is to complete")


def _run(arguments: Namespace, console: Console) -> None:
    try:
        import shtab
    except ImportError:
        raise missing("completion needs shtab", "completion") from None
    print(shtab.complete(arguments.parser, shell=arguments.shell))


_EXAMPLES = ('eval "$(torsor completion bash)"', "torsor completion zsh > ~/.zfunc/_torsor")
_SUMMARY = "print a script that completes commands and options in a shell"
COMPLETION = Command("completion", _SUMMARY, _add_arguments, _run, examples=_EXAMPLES)
