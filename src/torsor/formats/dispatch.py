"""The reader and the writer of a file, chosen by its suffix and, for XML, by its root element."""

from pathlib import Path

from torsor.checks import flag
from torsor.errors import ModelError, describe
from torsor.faults import StopReadingError, all_faults
from torsor.formats.closures_yaml import read_closures
from torsor.formats.mjcf import read_mjcf
from torsor.formats.mjcf_writing import write_mjcf
from torsor.formats.osim import read_skeleton
from torsor.formats.toml import read_toml
from torsor.formats.toml_writing import write_toml
from torsor.formats.urdf import EXPAND, read_urdf
from torsor.formats.urdf_writing import write_urdf
from torsor.formats.usd import read_usd, split_prim
from torsor.formats.usd_stage import SUFFIXES as USD_SUFFIXES
from torsor.formats.usd_writing import write_usd
from torsor.formats.xml import parse_xml
from torsor.mechanism import Mechanism

KINDS = ".urdf, .xml (MJCF or URDF), .toml, .yaml (closures of the URDF beside it), .usda, .usd, .usdc, .usdz, .osim"
_XML_SUFFIXES = (".urdf", ".xml", ".mjcf")
_XML_READERS = {"robot": read_urdf, "mujoco": read_mjcf}  # by root element
# Formats that another program turns into one of those above.
_CONVERTED = {
    ".xacro": ("a xacro macro, not plain URDF", EXPAND),
    ".sdf": (
        "SDF, the format of Gazebo, is not read",
        "convert it first: gz sdf and sdformat_urdf, or export URDF or MJCF",
    ),
}
_WRITERS = {".toml": write_toml, ".urdf": write_urdf, ".xml": write_mjcf, ".mjcf": write_mjcf}
_WRITERS |= dict.fromkeys((".usda", ".usd", ".usdc"), write_usd)


def read(path: str | Path, base: str = "fixed", strict: bool | None = None, snap: float = 0.0) -> Mechanism:
    """Return the mechanism in a file: URDF (.urdf, .xml), MJCF (.xml, .mjcf), TOML (.toml) or closures (.yaml).

    A .yaml file lists the closed loops, motors and joint types of the URDF file beside it. USD (.usda, .usd, .usdc,
    .usdz) and skeletons of OpenSim (.osim) are read too.

    ``base="floating"`` adds a free joint between the world and the root link. ``strict`` makes an inertia that no
    rigid body can have an error (True) or a warning (False). The default is an error in TOML, and a warning in URDF and
    MJCF, because many published files have such an inertia. So it is with limits, visuals, tags and transmissions of
    URDF, and with text of XML files, that cannot be read. Angles within ``snap`` (rad) of multiples of pi/12, which
    files write with few digits, become exact.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "block.urdf").write_text('<robot name="block"><link name="ground"/></robot>')
        ...     read(folder + "/block.urdf").base.name
        'ground'
    """
    with all_faults():
        return _read(Path(path), base, None if strict is None else flag(strict, str(path), "strict"), snap)


def _read(path: Path, base: str, strict: bool | None, snap: float) -> Mechanism:
    named, path = path, split_prim(path)[0]
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except (OSError, ValueError):  # no file can have such a name
        is_file = is_folder = False
    if not is_file:
        found = "a folder" if is_folder else "no such file"
        raise ModelError(describe(found, where=str(path), allowed="a .urdf, .xml, .toml, .yaml, .usda or .osim file"))
    suffix = path.suffix.lower()
    if suffix == ".toml":
        return read_toml(path, base, True if strict is None else strict, snap)
    if suffix in (".yaml", ".yml"):
        return read_closures(path, base, bool(strict), snap)
    if suffix in USD_SUFFIXES:
        return read_usd(named, base, bool(strict), snap)
    if suffix == ".osim":
        return read_skeleton(path, base, bool(strict), snap)
    if suffix in _CONVERTED:
        found, fix = _CONVERTED[suffix]
        raise ModelError(describe(found, where=path.name, allowed=KINDS, fix=fix))
    if suffix not in _XML_SUFFIXES:
        raise ModelError(describe(f"unknown kind of file {suffix!r}", where=path.name, allowed=KINDS))
    root = parse_xml(path, bool(strict))
    if root.tag == "sdf":
        found, fix = _CONVERTED[".sdf"]
        raise ModelError(
            describe(f"root element <sdf>: {found}", where=path.name, allowed="<robot> or <mujoco>", fix=fix)
        )
    if root.tag not in _XML_READERS:
        allowed = "<robot> (URDF) or <mujoco> (MJCF)"
        raise ModelError(describe(f"root element <{root.tag}>", where=path.name, allowed=allowed))
    try:
        return _XML_READERS[root.tag](path, base, bool(strict), root, snap)
    except ModelError as error:
        if isinstance(error, StopReadingError) or path.name in str(error):
            raise
        # Of a part that does not know its file, such as a frame or a posture.
        raise ModelError(f"{path.name}: {error}") from None


def write(mechanism: Mechanism, path: str | Path) -> None:
    """Write a mechanism as TOML (.toml), URDF, MJCF (.xml, .mjcf) or USD (.usda, .usd, .usdc), by the suffix.

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
        allowed, fix = ".toml, .urdf, .xml (MJCF), .usda, .usd, .usdc", f"name it {path.stem}.toml"
        raise ModelError(describe(f"the suffix is {path.suffix!r}", where=path.name, allowed=allowed, fix=fix))
    _WRITERS[suffix](mechanism, path)
