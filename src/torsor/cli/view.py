"""``torsor view``: show robots and results in the browser."""

import os
import warnings
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from torsor.base.archive import load_result
from torsor.base.errors import ModelError, ModelWarning
from torsor.base.progress import working
from torsor.base.result import Result
from torsor.cli.command import Command
from torsor.cli.options import add_option, add_output, in_options
from torsor.cli.outputs import PlainConsole, print_paths, write_json
from torsor.cli.states import add_base, add_search, as_robot, load_robot
from torsor.formats.meshes.mesh_files import ALLOWED
from torsor.robot.robot import Robot

PORT = 8080


def _add_arguments(parser: ArgumentParser) -> None:
    text = "robots (files or library names) and saved results (.npz)"
    parser.add_argument("what", metavar="ROBOT|RESULT", nargs="+", help=text)
    add_base(parser)
    add_option(parser, "--reference", ": a result (.npz), which is drawn as an outline", type=Path)
    parser.add_argument("--swing", action="store_true", help="move the joints periodically; a page shows one period")
    text = "simulate a controller that tracks the swing, for a robot that is 10 %% heavier than its model: computed "
    text += "torque, elastic tracking for elastic joints, or PD drives for a legged robot that moves its base on hard "
    text += "ground"
    parser.add_argument("--track", action="store_true", help=text)
    parser.add_argument("--collision", action="store_true", help="show collision shapes instead of visuals")
    add_search(parser)
    text = "allow meshes in this folder too. The option may be repeated"
    parser.add_argument("--meshes", metavar="FOLDER", action="append", default=[], help=text)
    text = "address to listen on (default: localhost). There is no password"
    parser.add_argument("--host", default="localhost", metavar="NAME", help=text)
    text = f"port, or the next free one if it is in use (default: {PORT})"
    parser.add_argument("--port", type=int, default=PORT, metavar="N", help=text)
    parser.add_argument("--no-browser", action="store_true", help="do not open the browser")
    add_output(parser, "an offline page (.html). No viewer is started", (".html",))


def _run(arguments: Namespace, console: Console) -> None:
    for folder in arguments.meshes:
        if not Path(folder).is_dir():
            raise ModelError("the folder does not exist", where=f"--meshes {folder}")
        os.environ[ALLOWED] = os.pathsep.join(filter(None, (os.environ.get(ALLOWED, ""), folder)))
    if arguments.output is not None:
        _write_page(arguments, console)
        return
    from torsor.view.live import show  # it needs the extra ``view``, which other commands do not

    place = {"host": arguments.host, "port": arguments.port}
    with warnings.catch_warnings(record=True) as caught:  # printed now, not when the viewer ends
        warnings.simplefilter("always", ModelWarning)
        items, names, reference = _subjects(arguments)
        looks = {"swing": arguments.swing, "reference": reference, "names": names}
        viewer = show(*items, **place, open=not arguments.no_browser, block=False, **looks)
    errors = PlainConsole(stderr=True, highlight=False, soft_wrap=True)
    for warning in caught:
        errors.print(f"[yellow]warning[/yellow]: {escape(in_options(warning.message, arguments))}")
    console.print(f"[bold]{escape(viewer.url)}[/bold] shows {escape(', '.join(arguments.what))}; press Ctrl-C to stop.")
    write_json(arguments, console, {"url": viewer.url, "page": None, "shows": _shown(arguments, items)})
    viewer.wait()


def _subjects(arguments: Namespace) -> tuple[list[Any], list[str] | None, Any]:
    """Return the items to show, their titles (None for the default ones), and the reference or None."""
    items = [_given(name, arguments) for name in arguments.what]
    reference = None if arguments.reference is None else load_result(arguments.reference)
    if not arguments.track:
        return items, None, reference
    if len(items) > 1 or not isinstance(items[0], Robot) or reference is not None:
        raise ModelError("cannot track this", where="--track", allowed="one robot, without --reference")
    from torsor.cli.tracking import TITLE, tracked_swing

    with working("simulating a controller"):
        run, reference = tracked_swing(items[0])
    return [run], [TITLE.format(items[0].name)], reference


def _write_page(arguments: Namespace, console: Console) -> None:
    """Write an offline page of the items."""
    from torsor.cli.tracking import swing
    from torsor.view.pages import page

    items, names, reference = _subjects(arguments)
    with working(f"writing {arguments.output.name}"):
        moving = [swing(item) if arguments.swing and not isinstance(item, Result) else item for item in items]
        page(dict(zip(names or arguments.what, moving, strict=True)), arguments.output, reference=reference)
    print_paths(console, arguments.output)
    write_json(arguments, console, {"url": None, "page": arguments.output, "shows": _shown(arguments, items)})


def _shown(arguments: Namespace, items: list[Any]) -> list[dict[str, str]]:
    """Return the name and the kind of everything shown."""
    kinds = [item.kind if isinstance(item, Result) else "robot" for item in items]
    return [{"name": name, "kind": kind} for name, kind in zip(arguments.what, kinds, strict=True)]


def _given(name: str, arguments: Namespace) -> Any:
    """Return the robot or the result that an argument names."""
    if Path(name).suffix.lower() != ".npz":
        robot = load_robot(Namespace(**vars(arguments) | {"robot": name, "strict": False, "snap": 0.0}))
        if not arguments.collision:
            return robot
        from torsor.view.scene.scene import showing_shapes

        return showing_shapes(as_robot(robot))
    return load_result(name)


_EXAMPLES = (
    "torsor view six_axis_arm --swing",
    "torsor view ur5 --track",
    "torsor view quadruped --track",
    "torsor view run.npz --reference plan.npz --no-browser",
    "torsor view ur5 --track -o run.html",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
