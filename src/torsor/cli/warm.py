"""``torsor warm``: compile the algorithms of a robot before their first call."""

import time
from argparse import ArgumentParser, Namespace

from rich.console import Console
from rich.markup import escape

from torsor.base.errors import ModelError
from torsor.cli.command import Command
from torsor.cli.options import add_option
from torsor.cli.outputs import write_json
from torsor.cli.states import add_robot, as_robot, load_robot
from torsor.compiler import DTYPES, cache
from torsor.robot.parallel import ParallelRobot
from torsor.view.tables import counted


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    add_option(parser, "--names", " (default: the algorithms of torsor count)", nargs="+")
    add_option(parser, "--dtype", " (default: float64)", choices=DTYPES, default="float64")
    parser.add_argument("--threads", default="1", metavar="N", help="threads for batches, or auto (default: 1)")


def _run(arguments: Namespace, console: Console) -> None:
    why = cache.refused()
    if cache.location() is None or why:
        fix = "unset TORSOR_CACHE, or set it to a folder that you own"
        raise ModelError(why or "the kernel cache is off", where="warm", fix=fix)
    threads = int(arguments.threads) if arguments.threads.isdigit() else arguments.threads
    loaded = load_robot(arguments)
    if isinstance(loaded, ParallelRobot) and arguments.names is None:
        loaded = as_robot(loaded)
    robot = as_robot(loaded).to(dtype=arguments.dtype, threads=threads)
    seconds = {}
    for name in arguments.names or counted(robot):
        start = time.perf_counter()
        with console.status(f"compiling {escape(name)} of {escape(robot.name)}"):
            robot.kernels.compiled(robot.kernels.request(name))
        seconds[name] = time.perf_counter() - start
        console.print(f"{escape(name)}: {seconds[name]:.2f} s", highlight=False)
    write_json(arguments, console, {"robot": robot.name, "cache": cache.location(), "seconds": seconds})


_EXAMPLES = ("torsor warm two_link", "torsor warm two_link --names inverse_dynamics forward_dynamics jacobian:link2")
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
