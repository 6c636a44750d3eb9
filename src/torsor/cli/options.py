"""Options that several commands share; each name is declared once, with one meaning."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torsor.base.errors import Message, shown

# The metavar and the help of each option. Commands may add details to the help, but must not change the meaning.
SHARED: dict[str, tuple[str | None, str]] = {
    "--output": ("FILE", "write the result"),
    "--plot": ("FILE", "write a figure (.png, .pdf, .svg, ...)"),
    "--report": ("FILE", "write an .html report that opens offline"),
    "--json": ("FILE", "write the result as JSON (- for standard output)"),
    "--force": (None, "replace existing output files"),
    "--debug": (None, "show the traceback if an error occurs"),
    "--rate": ("HZ", "samples per second in the output files"),
    "--joint-trajectory": ("FILE", "write a ROS JointTrajectory (.json, .yaml)"),
    "--q0": ("Q", "initial positions"),
    "--v0": ("V", "initial velocities"),
    "--tau": ("TAU", "joint torques"),
    "--duration": ("S", "duration of the motion"),
    "--step": ("S", "maximum integration step"),
    "--velocity": ("V", "velocity limits"),
    "--acceleration": ("A", "acceleration limits"),
    "--torque": ("TAU", "torque limits"),
    "--torque-rate": ("RATE", "torque rate limits"),
    "--clearance": ("M", "minimum distance between collision shapes"),
    "--cutoff": ("HZ", "cutoff frequency of the low-pass filter for positions"),
    "--force-cutoff": ("HZ", "cutoff frequency of the low-pass filter for forces"),
    "--reference": ("FILE", "motion to track"),
    "--map": ("FILE", "description of the log columns"),
    "--among": ("PATTERN", "parameters to identify, such as 'link3.*'"),
    "--names": ("NAME", "algorithms: NAME or NAME:LINK"),
    "--dtype": ("TYPE", "number type: float64 or float32"),
    "--workers": ("N", "number of processes"),
    "--iterations": ("N", "maximum number of iterations"),
    "--target": (None, "target position (m)"),
    "--friction": ("MU", "friction coefficient"),
    "--mass": ("KG", "body mass"),
    "--height": ("M", "body height"),
    "--sex": (None, "anthropometric table"),
    "--all": (None, "compute all"),
}


def add_option(parser: Any, flag: str, details: str = "", **settings: Any) -> None:
    """Declare a shared option on a parser or a group of options; ``details`` is appended to its help."""
    metavar, text = SHARED[flag]
    if metavar is not None:
        settings.setdefault("metavar", metavar)
    names = ("-o", flag) if flag == "--output" else (flag,)
    parser.add_argument(*names, help=f"{text}{details}", **settings)


class OutputFile(argparse.Action):
    """An argument that names an output file, or several if ``repeat`` is true. Paths are checked before a command runs.

    ``suffixes`` contains the allowed suffixes; if it is empty, all are allowed. ``kind`` is "file", "figure", "report",
    "folder", or "target" for a path that the command itself checks.
    """

    def __init__(
        self, *args: Any, suffixes: Sequence[str] = (), kind: str = "file", repeat: bool = False, **settings: Any
    ) -> None:
        super().__init__(*args, **{"type": Path, **settings})
        self.suffixes, self.kind, self.repeat = tuple(suffixes), kind, repeat

    def __call__(self, parser: Any, namespace: argparse.Namespace, value: Any, option: str | None = None) -> None:
        """Store the path, or append it."""
        earlier = getattr(namespace, self.dest) or []
        setattr(namespace, self.dest, [*earlier, value] if self.repeat else value)


def add_output(parser: Any, details: str, suffixes: Sequence[str] = (), repeat: bool = False) -> None:
    """Declare ``-o, --output FILE``; ``details`` describes the content and the formats."""
    more = ". The option may be repeated" if repeat else ""
    add_option(parser, "--output", f": {details}{more}", action=OutputFile, suffixes=suffixes, repeat=repeat)


def add_plot(parser: Any, details: str = "") -> None:
    """Declare ``--plot FILE``."""
    add_option(parser, "--plot", details, action=OutputFile, kind="figure")


def add_report(parser: Any, details: str = "") -> None:
    """Declare ``--report FILE.html``."""
    add_option(parser, "--report", details, action=OutputFile, kind="report", suffixes=(".html",))


QUOTES = "'\""


def in_options(message: Exception | Warning | str, arguments: argparse.Namespace) -> str:
    """Return a library message with its arguments replaced by options of the command."""
    if not isinstance(message, Message):
        return str(message)
    fields = {name: _code_in_options(getattr(message, name), arguments.flags) for name in ("what", "allowed", "fix")}
    flag = arguments.flags.get(message.argument, "")
    value = getattr(arguments, arguments.dests.get(flag, ""), None)
    value = value[0] if isinstance(value, list) and len(value) == 1 else value  # one number for all
    # The message may be about a key in a file that has the name of an option.
    is_given = value not in (None, False) if message.value is ... else shown(message.value) == shown(value)
    if flag and is_given:
        fields["argument"] = flag
    return str(message.but(**fields))


def _code_in_options(text: str, flags: Mapping[str, str]) -> str:
    """Return a text with arguments in backquotes, such as `steps=2`, replaced by options."""
    parts = text.split("`")
    for k in range(1, len(parts), 2):
        name, _, value = parts[k].partition("=")
        flag = flags.get(name)
        implied = flag and value == str(not flag.startswith("--no-"))
        option = flag if implied or not value else f"{flag} {value.strip(QUOTES)}"
        parts[k] = f"`{parts[k]}`" if flag is None else str(option)
    return "".join(parts)
