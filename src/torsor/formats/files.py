"""Choosing the reader of a file."""

from pathlib import Path

from torsor.errors import ModelError, describe
from torsor.formats.mjcf import read_mjcf
from torsor.formats.toml import read_toml
from torsor.formats.urdf import read_urdf
from torsor.formats.xml import parse_xml
from torsor.mechanism import Mechanism

__all__ = ["read"]


def read(path: str | Path, base: str = "fixed", strict: bool | None = None) -> Mechanism:
    """Return the mechanism in a file: URDF (.urdf, .xml), MJCF (.xml, .mjcf) or TOML (.toml).

    ``base="floating"`` puts a free joint under the root. ``strict`` decides what an inertia is that no body can have:
    an error, or a warning. By default it is a warning in URDF and MJCF, since many published files have one, and an
    error in TOML.
    """
    path = Path(path)
    try:
        there, folder = path.is_file(), path.is_dir()
    except (OSError, ValueError):  # no file can have such a name
        there = folder = False
    if not there:
        found = "a folder" if folder else "no such file"
        raise ModelError(describe(found, where=str(path), allowed="a .urdf, .xml or .toml file"))
    suffix = path.suffix.lower()
    if suffix == ".toml":
        return read_toml(path, base=base, strict=True if strict is None else strict)
    if suffix not in (".urdf", ".xml", ".mjcf"):
        raise ModelError(
            describe(f"unknown kind of file {suffix!r}", where=path.name, allowed=".urdf, .xml (MJCF or URDF), .toml")
        )
    root = parse_xml(path).tag
    if root == "robot":
        return read_urdf(path, base=base, strict=bool(strict))
    if root == "mujoco":
        return read_mjcf(path, base=base, strict=bool(strict))
    raise ModelError(describe(f"root element <{root}>", where=path.name, allowed="<robot> (URDF) or <mujoco> (MJCF)"))
