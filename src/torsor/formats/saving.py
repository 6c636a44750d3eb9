"""Choosing the writer of a file."""

from pathlib import Path

from torsor.errors import ModelError, describe
from torsor.formats.mjcf_writing import write_mjcf
from torsor.formats.toml import write_toml
from torsor.formats.urdf_writing import write_urdf
from torsor.mechanism import Mechanism

__all__ = ["write"]

_WRITERS = {".toml": write_toml, ".urdf": write_urdf, ".xml": write_mjcf, ".mjcf": write_mjcf}


def write(mechanism: Mechanism, path: str | Path) -> None:
    """Write a mechanism as TOML (.toml), URDF (.urdf) or MJCF (.xml, .mjcf), by the suffix of the file.

    Example:
        >>> import tempfile
        >>> from torsor.mechanism import Link, assemble
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write(assemble("block", [Link("ground", mass=2.5)], []), folder + "/block.urdf")
        ...     Path(folder, "block.urdf").read_text().count("<link ")
        1
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        allowed, fix = ".toml, .urdf, .xml (MJCF)", f"name it {path.stem}.toml"
        raise ModelError(describe(f"the suffix is {path.suffix!r}", where=path.name, allowed=allowed, fix=fix))
    _WRITERS[suffix](mechanism, path)
