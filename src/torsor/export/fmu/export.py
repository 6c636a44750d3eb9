"""An FMU as a file: model description, sources, library and documentation in one archive."""

import hashlib
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from torsor.base.checks import flag, instance_of
from torsor.base.errors import ModelError
from torsor.base.files import check_target, replacing
from torsor.compiler.source import words
from torsor.export.about import about_robot
from torsor.export.fmu.building import build_library, compiler, library_path
from torsor.export.fmu.description import TOOL, build_description, model_description, page
from torsor.export.fmu.model import Model
from torsor.export.fmu.settings import Settings
from torsor.export.fmu.sources import source_files, with_token
from torsor.robot.robot import Robot

VERSIONS = (2, 3)
_SUFFIX = ".fmu"
_DESCRIPTION = "modelDescription.xml"
_HEAD = 10_000  # bytes of a description within which its program is named
_LONGEST = 60  # characters of the name of the library
_DATE = (1980, 1, 1, 0, 0, 0)  # of every member: equal content makes equal files


def fmi(
    robot: Robot,
    path: str | Path,
    names: Sequence[str] = (),
    version: int = 3,
    inverse: bool = False,
    parameters: Sequence[str] | Mapping[str, Any] = (),
    external: Sequence[str] = (),
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    step: float = 1e-3,
    binary: bool = True,
    overwrite: bool = True,
) -> list[Path]:
    """Write the dynamics as a functional mock-up unit, for model exchange and co-simulation, and return its path.

    Inputs are the forces ``tau`` (N m, N), the states q and v are outputs, as the accelerations a are; with
    ``inverse``, q, v and a are inputs and tau the output. ``names`` are more outputs: "joint_wrenches:LINK",
    "pose:PLACE", "velocity:PLACE", "acceleration:PLACE", "center_of_mass", "kinetic_energy", "potential_energy".
    ``parameters`` are tunable numbers of the robot, as in ``robot.parametric``; ``external`` are links with a wrench as
    input. ``q0`` (nq,) and ``v0`` (nv,) are the start values, by default neutral and at rest. Co-simulation takes
    equal steps of ``simulate``'s rk4, none longer than ``step`` (s), which is a parameter too.

    ``version`` of FMI is 3 or 2. The file has the C sources and, unless ``binary`` is False, a library for this
    machine, which needs a C compiler. Directional derivatives are exact. An existing file is an error with
    ``overwrite=False``. With loops, q0 and v0 are closed. See docs/fmi.md.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = folder + "/arm.fmu"
        ...     torsor.export.fmi(torsor.library.two_link(), path, ["pose:link2"], binary=False)[0].name
        'arm.fmu'
    """
    where = instance_of(robot, Robot, "export.fmi", "robot", allowed="a torsor.Robot").name
    file = _checked_path(path, flag(overwrite, where, "overwrite"))
    if type(version) is not int or version not in VERSIONS:
        allowed = " or ".join(map(str, VERSIONS))
        raise ModelError(f"of FMI is {version!r}", argument="version", value=version, where=where, allowed=allowed)
    flag(inverse, where, "inverse")
    settings = Settings.of(robot, names, parameters, external, inverse, q0, v0, step)
    members = _members(Model(robot, settings), version, flag(binary, where, "binary"))
    with replacing(file) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name, _DATE)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(member, content)
    return [file]


def _members(model: Model, fmi: int, binary: bool) -> dict[str, bytes]:
    """Return the content of each file in the FMU, by its path."""
    identifier = words(model.robot.name)[:_LONGEST]
    own = {each.name: each.value for each in model.settings.free}
    about = about_robot(model.robot, (), own)
    where = model.robot.name
    library, program = (library_path(identifier, fmi, where), compiler(where)) if binary else ("", [])
    texts = source_files(model, identifier, "", fmi, about)
    sources = [name for name in texts if name.endswith(".c")]
    # The token is a hash of everything else: what differs has another.
    blank = model_description(model, identifier, "", fmi, sources)
    token = _token(blank, *texts.values())
    texts = with_token(texts, model, identifier, token, fmi)
    members = {_DESCRIPTION: model_description(model, identifier, token, fmi, sources)}
    members["documentation/index.html"] = page(model, about)
    members |= {f"sources/{name}": text for name, text in texts.items()}
    if fmi == 3:
        members["sources/buildDescription.xml"] = build_description(identifier, sources)
    found = {name: text.encode() for name, text in members.items()}
    if binary:
        with tempfile.TemporaryDirectory() as folder:
            found[library] = build_library(program, Path(folder), texts, where)
    return found


def _token(*texts: str) -> str:
    """Return a hash in the form of a GUID."""
    digits = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    return f"{{{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}}}"


def _checked_path(path: str | Path, overwrite: bool) -> Path:
    """Return the path of a file that can be written; raise ModelError otherwise."""
    if not isinstance(path, (str, Path)):
        raise ModelError(argument="path", value=path, where="export.fmi", allowed=f"the path of a {_SUFFIX} file")
    file = Path(path)
    where = str(file).replace("\0", "\\0")
    if not file.name:
        raise ModelError(argument="path", value=str(path), where="export.fmi", allowed="a file", fix=f"robot{_SUFFIX}")
    if file.suffix.lower() != _SUFFIX:
        fix = f"{where}{_SUFFIX}" if not file.suffix else str(Path(where).with_suffix(_SUFFIX))
        raise ModelError(f"the suffix is {file.suffix!r}", value=file.suffix, where=where, allowed=_SUFFIX, fix=fix)
    check_target(file)
    if file.exists() and not overwrite:
        raise ModelError("it exists", where=where, fix="another name, or `overwrite=True`")
    if file.exists() and not _is_own(file):
        found = "it exists and was not written by Torsor"
        raise ModelError(found, where=where, allowed="files that were", fix="another name")
    return file


def _is_own(file: Path) -> bool:
    """Return whether Torsor wrote a file: its model description says so."""
    try:
        with zipfile.ZipFile(file) as archive, archive.open(_DESCRIPTION) as description:
            return f'generationTool="{TOOL} '.encode() in description.read(_HEAD)
    except (OSError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return False
