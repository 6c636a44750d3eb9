"""``torsor convert``: a robot as a file of another format."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from torsor.base.errors import ModelError
from torsor.cli.command import Command
from torsor.cli.outputs import check_apart, check_output, print_paths, write_json
from torsor.cli.states import add_robot, as_robot, given_robot
from torsor.formats.dispatch import WRITTEN
from torsor.formats.writing import copies_folder


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("path", metavar="FILE", type=Path, help=f"the file to write: {', '.join(WRITTEN)}")
    parser.add_argument("--force", action="store_true", help="replace the file, if there is one of this name")


def _run(arguments: Namespace, console: Console) -> None:
    path: Path = arguments.path
    check_output(path, WRITTEN)
    check_apart([path, arguments.json], [arguments.robot.partition("#")[0]])
    if path.exists() and not arguments.force:
        raise ModelError("it exists", where=str(path), fix="--force replaces it")
    robot = as_robot(given_robot(arguments))
    robot.save(path)
    folder = copies_folder(path)
    meshes = folder if folder.is_dir() and f"{folder.name}/".encode() in path.read_bytes() else None
    print_paths(console, path, meshes)
    document = {"robot": robot.name, "file": str(path), "meshes": None if meshes is None else str(meshes)}
    write_json(arguments, console, document)


_EXAMPLES = ("torsor convert two_link two_link.urdf", "torsor convert ur5 ur5.sdf --base floating")
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
