"""The real robots of the wheel example-robot-data."""

from importlib.metadata import files
from pathlib import Path


def robot_files() -> list[Path]:
    listed = files("example-robot-data") or []
    return sorted(Path(str(each.locate())).resolve() for each in listed if each.name.endswith(".urdf"))


def robot_file(name: str) -> Path:
    return next(path for path in robot_files() if path.name == name)
