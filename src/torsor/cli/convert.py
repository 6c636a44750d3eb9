"""``torsor convert``: write a robot in a different file format."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from torsor.cli.command import Command
from torsor.cli.options import OutputFile
from torsor.cli.outputs import print_paths, write_json
from torsor.cli.states import add_robot, as_robot, load_robot
from torsor.formats.dispatch import WRITTEN
from torsor.formats.writing import copies_folder


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    text = f"output file: {', '.join(WRITTEN)}. Meshes in other folders are copied next to it"
    parser.add_argument("path", metavar="FILE", action=OutputFile, suffixes=WRITTEN, help=text)


def _run(arguments: Namespace, console: Console) -> None:
    path: Path = arguments.path
    robot = as_robot(load_robot(arguments))
    robot.save(path)
    folder = copies_folder(path)
    meshes = folder if folder.is_dir() and f"{folder.name}/".encode() in path.read_bytes() else None
    print_paths(console, path, meshes)
    document = {"robot": robot.name, "file": str(path), "meshes": None if meshes is None else str(meshes)}
    write_json(arguments, console, document)


_EXAMPLES = ("torsor convert two_link two_link.urdf", "torsor convert robot.urdf robot.sdf --base floating")
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
