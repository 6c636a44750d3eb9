"""``torsor view``: robots and results in the browser."""

import os
import warnings
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from torsor.base.archive import load_result
from torsor.base.errors import ModelError, ModelWarning
from torsor.base.result import Result
from torsor.cli.command import Command, PlainConsole
from torsor.cli.outputs import check_output, print_paths, write_json
from torsor.cli.states import add_search, as_robot, given_robot
from torsor.formats.meshes.mesh_files import ALLOWED

PORT = 8080


def _add_arguments(parser: ArgumentParser) -> None:
    what = "a robot file or a robot of the library (as for torsor info), or a .npz file of a saved result"
    parser.add_argument("what", metavar="ROBOT|RESULT", nargs="+", help=f"{what}; several are shown together")
    parser.add_argument("--base", choices=("fixed", "floating"), default="fixed", help="motion of root links of files")
    parser.add_argument("--swing", action="store_true", help="let the coordinates of robots swing")
    parser.add_argument("--collision", action="store_true", help="draw the collision shapes in place of the visuals")
    add_search(parser)
    text = "also allow meshes in this folder"
    parser.add_argument("--meshes", metavar="FOLDER", action="append", default=[], help=text)
    text = "address to listen on (default: localhost, this machine alone; there is no password)"
    parser.add_argument("--host", default="localhost", help=text)
    parser.add_argument("--port", type=int, default=PORT, help=f"port, or the next one that is free (default: {PORT})")
    parser.add_argument("--no-browser", action="store_true", help="do not open the browser")
    text = "write a page that shows this offline to this .html file, and start no viewer; it needs no extra"
    parser.add_argument("--page", type=Path, metavar="FILE", help=text)


def _run(arguments: Namespace, console: Console) -> None:
    check_output(arguments.page, [".html"])
    for folder in arguments.meshes:
        if not Path(folder).is_dir():
            raise ModelError("no such folder", where=f"--meshes {folder}")
        os.environ[ALLOWED] = os.pathsep.join(filter(None, (os.environ.get(ALLOWED, ""), folder)))
    if arguments.page is not None:
        from torsor.view.pages import page

        given = [_given(name, arguments) for name in arguments.what]
        page(given[0] if len(given) == 1 else dict(zip(arguments.what, given, strict=True)), arguments.page)
        print_paths(console, arguments.page)
        write_json(arguments, console, {"url": None, "page": arguments.page, "shows": _shown(arguments, given)})
        return
    from torsor.view.live import show  # it needs the extra ``view``, which other commands do not

    place = {"host": arguments.host, "port": arguments.port}
    with warnings.catch_warnings(record=True) as caught:  # told now, not when the viewer ends
        warnings.simplefilter("always", ModelWarning)
        given = [_given(name, arguments) for name in arguments.what]
        viewer = show(*given, **place, open=not arguments.no_browser, block=False, swing=arguments.swing)
    errors = PlainConsole(stderr=True, highlight=False, soft_wrap=True)
    for warning in caught:
        errors.print(f"[yellow]warning[/yellow]: {escape(str(warning.message))}")
    console.print(f"[bold]{escape(viewer.url)}[/bold] shows {escape(', '.join(arguments.what))}; Ctrl-C ends it.")
    write_json(arguments, console, {"url": viewer.url, "page": None, "shows": _shown(arguments, given)})
    viewer.wait()


def _shown(arguments: Namespace, given: list[Any]) -> list[dict[str, str]]:
    """Return what is shown: the argument, and what it is."""
    kinds = [each.kind if isinstance(each, Result) else "robot" for each in given]
    return [{"name": name, "kind": kind} for name, kind in zip(arguments.what, kinds, strict=True)]


def _given(name: str, arguments: Namespace) -> Any:
    """Return the robot or the result that an argument names."""
    if Path(name).suffix.lower() != ".npz":
        robot = given_robot(Namespace(**vars(arguments) | {"robot": name, "strict": False, "snap": 0.0}))
        if not arguments.collision:
            return robot
        from torsor.view.scene.scene import showing_shapes

        return showing_shapes(as_robot(robot))
    return load_result(name)


_EXAMPLES = (
    "torsor view six_axis_arm --swing",
    "torsor view robot.urdf --base floating",
    "torsor view motion.npz other.npz --no-browser",
    "torsor view two_link --page two_link.html",
    "torsor view robot.urdf --collision",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
