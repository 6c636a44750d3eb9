"""``torsor completion``: a shell script that completes commands and options."""

from argparse import ArgumentParser, Namespace

from rich.console import Console

from torsor.base.documents import STANDARD_OUTPUT
from torsor.base.errors import ModelError, missing
from torsor.cli.command import Command
from torsor.cli.outputs import PlainConsole, write_json

# Shells, and where each looks for completion scripts.
SHELLS = {
    "bash": "~/.local/share/bash-completion/completions/torsor",
    "zsh": "a file _torsor in a folder of $fpath, such as ~/.zfunc/_torsor",
    "tcsh": "a file that ~/.tcshrc sources",
    "fish": "~/.config/fish/completions/torsor.fish",
}


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SHELLS), help="shell")


def _run(arguments: Namespace, console: Console) -> None:
    try:
        import shtab
    except ImportError:
        raise missing("completion needs shtab", "completion") from None
    shell = arguments.shell
    if shell not in shtab.SUPPORTED_SHELLS:
        found, fix = f"shtab {shtab.__version__} does not support {shell}", "pip install --upgrade shtab"
        raise ModelError(found, where="completion", allowed=", ".join(shtab.SUPPORTED_SHELLS), fix=fix)
    script = shtab.complete(arguments.parser, shell=shell)
    if arguments.json != STANDARD_OUTPUT:
        print(script)
    write_json(arguments, PlainConsole(stderr=True), {"shell": shell, "place": SHELLS[shell], "script": script})


_EXAMPLES = (
    'eval "$(torsor completion bash)"',
    "torsor completion zsh > ~/.zfunc/_torsor",
    "torsor completion fish | source",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
