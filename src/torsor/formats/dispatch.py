"""The reader and the writer of a file, chosen by its suffix and, for XML, by its root element."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from torsor.base.checks import LARGEST, flag
from torsor.base.errors import ModelError, describe
from torsor.base.faults import StopReadingError, all_faults
from torsor.base.files import check_file, check_name
from torsor.formats.meshes.usd_files import USD_SUFFIXES, split_prim
from torsor.formats.mjcf.reading import read_mjcf
from torsor.formats.mjcf.writing import write_mjcf
from torsor.formats.osim.reading import read_skeleton
from torsor.formats.robot_descriptions import described_robot, is_description
from torsor.formats.sdf.reading import read_sdf
from torsor.formats.sdf.writing import write_sdf
from torsor.formats.search_path import searching
from torsor.formats.toml.reading import read_toml
from torsor.formats.toml.writing import write_toml
from torsor.formats.urdf.closures import read_closures
from torsor.formats.urdf.reading import read_urdf
from torsor.formats.urdf.writing import write_urdf
from torsor.formats.usd.reading import read_usd
from torsor.formats.usd.writing import write_usd
from torsor.formats.xacro_files import expanded
from torsor.formats.xml import parse_xml
from torsor.mechanism import Mechanism

KINDS = (
    ".urdf, .xml (MJCF, URDF or SDF), .sdf, .world, .xacro, .toml, .yaml (closures of the URDF beside it), "
    ".usda, .usd, .usdc, .usdz, .osim"
)
_XML_SUFFIXES = (".urdf", ".xml", ".mjcf", ".sdf", ".world")
_XML_READERS = {"robot": read_urdf, "mujoco": read_mjcf, "sdf": read_sdf}  # by root element
_WRITERS = {".toml": write_toml, ".urdf": write_urdf, ".xml": write_mjcf, ".mjcf": write_mjcf, ".sdf": write_sdf}
_WRITERS |= dict.fromkeys((".usda", ".usd", ".usdc"), write_usd)
WRITTEN = tuple(_WRITERS)
"""The suffixes of the files that ``write`` writes."""


def read(
    path: str | Path,
    base: str = "fixed",
    strict: bool | None = None,
    snap: float = 0.0,
    search: Sequence[str | Path] = (),
    xacro: Mapping[str, object] | None = None,
) -> Mechanism:
    """Return the mechanism in a file: URDF (.urdf), SDF (.sdf), MJCF (.xml), xacro, TOML (.toml) or closures (.yaml).

    A .yaml file lists the closed loops, motors and joint types of the URDF file beside it; .osim are skeletons of
    OpenSim. ``world.sdf#arm`` is the model ``arm`` of that file, ``scene.usda#/World/arm`` an articulation of USD
    (.usda, .usd, .usdc, .usdz), ``robot_descriptions:NAME`` a robot of that package. ``search`` are folders of packages
    and models (``package://``, ``model://``), ``xacro`` the arguments of a .xacro file.

    ``base="floating"`` adds a free joint between the world and the root link. ``strict`` makes an inertia that no
    rigid body can have an error (True) or a warning (False). The default is an error in TOML, and a warning in other
    formats, because many published files have such an inertia. So it is with limits, visuals, tags and transmissions of
    URDF, and with text of XML files, that cannot be read. Angles within ``snap`` (rad) of multiples of pi/12, which
    files write with few digits, become exact.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "block.urdf").write_text('<robot name="block"><link name="ground"/></robot>')
        ...     read(folder + "/block.urdf").base.name
        'ground'
    """
    file, model, arguments = Path(path), "", dict(xacro or {})
    folders = [search] if isinstance(search, (str, Path)) else list(search)
    if is_description(path):
        file, own, more = described_robot(str(path))
        arguments, folders = own | arguments, [*folders, *more]
    elif ".sdf#" in file.name or ".world#" in file.name:
        name, _, model = file.name.partition("#")
        file = file.with_name(name)
    strict = None if strict is None else flag(strict, str(path), "strict")
    with all_faults(), searching(folders), np.errstate(over="ignore", invalid="ignore"):
        try:  # what overflows is infinite, and then refused by the parts of the mechanism
            return _read(file, base, strict, snap, model, arguments)
        except OverflowError:
            found = "its numbers are too large to compute with"
            raise ModelError(describe(found, where=file.name, allowed=f"numbers up to {LARGEST:g}")) from None
        except ModelError as error:
            name = split_prim(file)[0].name
            if isinstance(error, StopReadingError) or name in str(error):
                raise
            # Of a part that does not know its file, such as a frame or a posture.
            raise ModelError(f"{name}: {error}") from None


def _read(
    path: Path, base: str, strict: bool | None, snap: float, model: str, arguments: dict[str, object]
) -> Mechanism:
    named, path = path, split_prim(path)[0]
    check_file(path, KINDS)
    suffix = path.suffix.lower()
    if arguments and suffix != ".xacro":
        raise ModelError(describe("arguments of xacro", where=path.name, allowed="a .xacro file"))
    if suffix == ".toml":
        return read_toml(path, base, True if strict is None else strict, snap)
    if suffix in (".yaml", ".yml"):
        return read_closures(path, base, bool(strict), snap)
    if suffix in USD_SUFFIXES:
        return read_usd(named, base, bool(strict), snap)
    if suffix == ".osim":
        return read_skeleton(path, base, bool(strict), snap)
    if suffix != ".xacro" and suffix not in _XML_SUFFIXES:
        raise ModelError(describe(f"unknown kind of file {suffix!r}", where=path.name, allowed=KINDS))
    root = expanded(path, arguments) if suffix == ".xacro" else parse_xml(path, bool(strict))
    if root.tag not in _XML_READERS or (suffix == ".xacro" and root.tag == "mujoco"):
        allowed = "<robot> (URDF), <sdf> (SDF) or <mujoco> (MJCF, not in .xacro)"
        raise ModelError(describe(f"root element <{root.tag}>", where=path.name, allowed=allowed))
    if model and root.tag != "sdf":
        raise ModelError(describe(f"a model {model!r} of it", where=path.name, allowed="models of SDF files"))
    if root.tag == "sdf":
        return read_sdf(path, base, bool(strict), root, snap, model)
    return _XML_READERS[root.tag](path, base, bool(strict), root, snap)


def write(mechanism: Mechanism, path: str | Path) -> None:
    """Write a mechanism as TOML, URDF, SDF, MJCF (.xml, .mjcf) or USD (.usda, .usd, .usdc), by the suffix of the file.

    Example:
        >>> import tempfile
        >>> from torsor.mechanism import Link, build
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write(build("block", [Link("ground", mass=2.5)], []), folder + "/block.urdf")
        ...     Path(folder, "block.urdf").read_text().count("<link ")
        1
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        allowed, fix = ".toml, .urdf, .sdf, .xml (MJCF), .usda, .usd, .usdc", f"name it {path.stem}.toml"
        raise ModelError(describe(f"the suffix is {path.suffix!r}", where=path.name, allowed=allowed, fix=fix))
    check_name(path)
    if path.is_dir():
        raise ModelError(describe("it is a folder", where=str(path), allowed="a file"))
    _WRITERS[suffix](mechanism, path)
