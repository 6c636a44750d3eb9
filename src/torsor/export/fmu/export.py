"""An FMU archive: model description, sources, library and documentation."""

import hashlib
import html
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from torsor._version import __version__
from torsor.base.checks import flag, instance_of
from torsor.base.errors import ModelError
from torsor.base.files import check_target, replacing
from torsor.compiler.c import CScalar, export_c, string_literal
from torsor.compiler.source import MARK, About, asset, comment, words
from torsor.export.fmu.model import Model
from torsor.export.fmu.settings import Settings
from torsor.export.fmu.variables import CLOSING, STEP, UNITS, Variable
from torsor.robot.about import about_robot
from torsor.robot.robot import Robot

_COMPILERS = ("cc", "gcc", "clang")
_OPTIONS = ("-std=c99", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-fvisibility=hidden")
# System names in FMI 3 and 2, and the library suffix.
_SYSTEMS = {
    "linux": ("linux", "linux64", ".so"),
    "darwin": ("darwin", "darwin64", ".dylib"),
    "win32": ("windows", "win64", ".dll"),
}
_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_SOURCES_ONLY = "pass `binary=False` to export only the sources"
_MAX_OUTPUT_SHOWN = 600  # compiler output in an error, characters


def library_path(identifier: str, fmi: int, where: str) -> str:
    """Return the library path for this machine in an FMU. In FMI 2, linux64 covers all processors."""
    system, machine = _SYSTEMS.get(sys.platform), _MACHINES.get(platform.machine().lower())
    if system is None or machine is None:
        message = f"FMI does not define a platform name for {sys.platform} on {platform.machine()}"
        allowed = "Linux, macOS, Windows"
        raise ModelError(message, where=where, allowed=allowed, fix=_SOURCES_ONLY)
    name, name_2, suffix = system
    folder = name_2 if fmi == 2 else f"{machine}-{name}"
    return f"binaries/{folder}/{identifier}{suffix}"


def compiler(where: str) -> list[str]:
    """Return the C compiler command: the value of the environment variable CC, or the first installed compiler."""
    try:
        command = shlex.split(os.environ.get("CC", ""))
    except ValueError as error:  # an unclosed quotation mark
        raise ModelError(f"CC is {os.environ['CC']!r}: {error}", where=where, allowed="a command") from None
    for each in command[:1] or _COMPILERS:
        if (path := shutil.which(each)) is not None:
            return [str(Path(path).absolute()), *command[1:]]
    what = f"CC names {command[0]!r}, which was not found" if command else "no C compiler was found"
    allowed = f"{', '.join(_COMPILERS)}, or the command in the environment variable CC"
    fix = f"install one (Debian: apt install gcc; macOS: xcode-select --install), or {_SOURCES_ONLY}"
    raise ModelError(what, where=where, allowed=allowed, fix=fix)


def build_library(program: Sequence[str], folder: Path, texts: Mapping[str, str], where: str) -> bytes:
    """Build a shared library from C sources in a folder with the compiler ``program``, and return its content.

    ``texts`` {file name: text} are the sources. ModelError is raised if the compiler fails.
    """
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="ascii", newline="\n")
    library = folder / "library"
    command = [*program, *_OPTIONS, *[name for name in texts if name.endswith(".c")], "-o", library.name, "-lm"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
        failed = done.returncode != 0
        said = " ".join(done.stderr.split())[-_MAX_OUTPUT_SHOWN:] or "it did not write a library"
    except OSError as error:  # not an executable file
        failed, said = True, str(error)
    if failed or not library.exists():
        fix = f"set the environment variable CC to another compiler, or {_SOURCES_ONLY}"
        raise ModelError(f"{program[0]} failed: {said}", where=where, fix=fix)
    return library.read_bytes()


TOOL = "Torsor"
"""Name of the generation tool in model descriptions."""

_LOG = "logStatusError"


def model_description(model: Model, identifier: str, token: str, fmi: int, sources: Sequence[str]) -> str:
    """Return modelDescription.xml for FMI 2 or 3; ``sources`` names the C files, which FMI 2 lists there."""
    dynamics = "inverse dynamics" if model.settings.inverse else "forward dynamics"
    plain = all(each.name.isascii() and "`" not in each.name for each in model.variables)  # structured names
    about = {
        "fmiVersion": f"{fmi}.0",
        "modelName": _text(model.robot.name),
        {2: "guid", 3: "instantiationToken"}[fmi]: token,
        "description": _text(f"{dynamics} of {model.robot.name}; SI units, radians"),
        "generationTool": f"{TOOL} {__version__}",
        "variableNamingConvention": "structured" if plain else "flat",
    }
    root = ET.Element("fmiModelDescription", about | ({"numberOfEventIndicators": "0"} if fmi == 2 else {}))
    for kind, attributes in _interfaces(fmi).items():
        interface = ET.SubElement(root, kind, {"modelIdentifier": identifier} | attributes)
        if fmi == 2:
            files = ET.SubElement(interface, "SourceFiles")
            for name in sources:
                ET.SubElement(files, "File", name=name)
    units = ET.SubElement(root, "UnitDefinitions")
    for name in [each for each in UNITS if each in {variable.unit for variable in model.variables}]:
        unit = ET.SubElement(units, "Unit", name=name)
        ET.SubElement(unit, "BaseUnit", {base: str(power) for base, power in UNITS[name].items()})
    categories = ET.SubElement(root, "LogCategories")
    ET.SubElement(categories, "Category", name=_LOG, description="reason why a function failed")
    ET.SubElement(root, "DefaultExperiment", startTime="0.0", stopTime="1.0", stepSize=repr(model.settings.step))
    variables = ET.SubElement(root, "ModelVariables")
    for reference, each in enumerate(model.variables):
        _add_variable(variables, each, reference, fmi)
    _add_structure(ET.SubElement(root, "ModelStructure"), model, fmi)
    return _document(root)


def _interfaces(fmi: int) -> dict[str, dict[str, str]]:
    """Return the attributes that declare the capabilities of both interfaces."""
    if fmi == 2:
        able = ["canGetAndSetFMUstate", "canSerializeFMUstate", "providesDirectionalDerivative"]
        exchange = ["completedIntegratorStepNotNeeded"]
    else:
        able = ["canGetAndSetFMUState", "canSerializeFMUState", "providesDirectionalDerivatives"]
        able, exchange = [*able, "providesAdjointDerivatives"], []
    names = {"ModelExchange": able + exchange, "CoSimulation": [*able, "canHandleVariableCommunicationStepSize"]}
    return {kind: dict.fromkeys(own, "true") for kind, own in names.items()}


def _add_variable(parent: ET.Element, each: Variable, reference: int, fmi: int) -> None:
    about = {"name": each.name, "valueReference": str(reference), "causality": each.causality}
    about |= {"variability": each.variability} | ({} if each.initial is None else {"initial": each.initial})
    about |= {"description": _text(each.description)} if each.description else {}
    numbers = {"unit": each.unit} if each.unit else {}
    if each.state is not None:  # FMI 2 counts variables from 1
        numbers["derivative"] = str(each.state + (fmi == 2))
    numbers |= {"min": repr(each.least)} if each.least is not None else {}
    numbers |= {"start": repr(each.start)} if each.start is not None else {}
    if fmi == 2:
        ET.SubElement(ET.SubElement(parent, "ScalarVariable", about), "Real", numbers)
    else:
        ET.SubElement(parent, "Float64", about | numbers)


def _add_structure(parent: ET.Element, model: Model, fmi: int) -> None:
    """Add the outputs, state derivatives and initial unknowns, each with its dependencies."""
    variables, z, one = model.variables, model.z, int(fmi == 2)  # FMI 2 counts variables from 1
    state_dependencies = {k: [k] for k, each in enumerate(variables) if each.kind == "state"}
    depends = dict(enumerate(model.pattern, start=z)) | state_dependencies
    at_work = {k: [d for d in each if variables[d].kind != "parameter"] for k, each in depends.items()}
    outputs = [k for k, each in enumerate(variables) if each.causality == "output"]
    rates = [k for k, each in enumerate(variables) if each.kind == "rate"]
    for name, group, unknowns, knowns in (
        ("Output", "Outputs", outputs, at_work),
        ("ContinuousStateDerivative", "Derivatives", rates, at_work),
        ("InitialUnknown", "InitialUnknowns", range(z, len(variables)), depends),
    ):
        place = ET.SubElement(parent, group) if one and unknowns else parent
        for k in unknowns:
            about = {"index" if one else "valueReference": str(k + one)}
            about["dependencies"] = " ".join(str(known + one) for known in knowns[k])
            ET.SubElement(place, "Unknown" if one else name, about)


def build_description(identifier: str, sources: Iterable[str]) -> str:
    """Return sources/buildDescription.xml of FMI 3, which defines how to compile the C files."""
    root = ET.Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = ET.SubElement(root, "BuildConfiguration", modelIdentifier=identifier)
    files = ET.SubElement(configuration, "SourceFileSet", language="C99")
    for name in sources:
        ET.SubElement(files, "SourceFile", name=name)
    ET.SubElement(configuration, "Library", name="m", external="true", description="the C mathematics library")
    return _document(root)


def page(model: Model, about: About) -> str:
    """Return documentation/index.html with a description of the variables."""
    rows = "\n".join(
        f"<tr><td>{html.escape(variable.name)}</td><td>{variable.causality}</td><td>{variable.unit}</td>"
        f"<td>{html.escape(_text(variable.description))}</td></tr>"
        for variable in model.variables
    )
    lines = "\n".join(f"<p>{html.escape(_text(line))}</p>" for line in about.lines)
    step = "" if model.settings.inverse else _STEP + _LOOPS * (model.loops is not None)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{html.escape(_text(model.robot.name))}'
        f"</title></head>\n<body>\n{lines}\n{step}<table>\n"
        f"<tr><th>variable</th><th>causality</th><th>unit</th><th>meaning</th></tr>\n{rows}\n</table>\n"
        "</body>\n</html>\n"
    )


_STEP = f"""<p>Co-simulation uses the classical Runge-Kutta method with equal steps of at most the parameter {STEP}.
Inputs are constant during a communication step. Joint limits and drive limits are not enforced.</p>
"""
_LOOPS = f"""<p>Co-simulation closes the loops after each step. In model exchange, closure errors decay at the rate
{CLOSING}. Start values must satisfy the loop closure.</p>
"""


def _text(text: str) -> str:
    """Return the text, in which a question mark replaces each character that XML does not allow."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _document(root: ET.Element) -> str:
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


KERNELS = "kernels"
_INTERFACES = {2: ("fmi2.h", "fmi2.c"), 3: ("fmi3.h", "fmi3.c", "fmi3_absent.c")}


def source_files(model: Model, identifier: str, token: str, fmi: int, about: About) -> dict[str, str]:
    """Return the text of each file by name."""
    texts = {"robot.h": _header(model, identifier, token, fmi), "robot.c": _numbers(model)}
    for name in ("model.h", "model.c", *_INTERFACES[fmi]):
        texts[name] = comment(f"{MARK}.") + asset(name, "torsor.export.fmu")
    functions = {f"{identifier}_robot_{name}": model.functions[name] for name in _kernels(model, fmi)}
    with tempfile.TemporaryDirectory() as folder:
        header, source, _ = export_c(functions, folder, name=KERNELS, about=about)
        return texts | {path.name: path.read_text(encoding="ascii") for path in (header, source)}


def _kernels(model: Model, fmi: int) -> list[str]:
    """Return the function names. FMI 2 has no adjoint derivatives."""
    return [name for name in model.functions if name != "adjoint" or fmi > 2]


def _header(model: Model, identifier: str, token: str, fmi: int) -> str:
    """Return robot.h with the order of the variables and the function names."""
    states = model.robot.nq + model.robot.nv if not model.settings.inverse else 0
    places = {
        "ROBOT_VARIABLES": len(model.variables),
        "ROBOT_X": model.x,
        "ROBOT_INPUTS": model.first("input"),
        "ROBOT_Q": model.z - states,
        "ROBOT_Z": model.z,
        "ROBOT_OUTPUTS": model.first("output"),
        "ROBOT_NQ": model.robot.nq if states else 0,
        "ROBOT_NV": model.robot.nv if states else 0,
    }
    names = [variable.name for variable in model.variables]
    places |= {f"ROBOT_{name.upper()}": names.index(name) for name in (STEP, CLOSING) if name in names}
    lines = [f"#define {name} {number}" for name, number in places.items()]
    lines += [f'#define ROBOT_TOKEN "{token}"', f"#define ROBOT_PREFIX {identifier}_"]
    tables = ("names", "start", "least", *_kernels(model, fmi))
    lines += [f"#define robot_{name} {identifier}_robot_{name}" for name in tables]
    declared = ("const char *const robot_names", "const double robot_start", "const double robot_least")
    lines += ["", *(f"extern {each}[ROBOT_VARIABLES];" for each in declared)]
    what = comment(f"{MARK}. First value reference of each kind of variable (model.h), and names for the linker.")
    return f"{what}#ifndef ROBOT_H\n#define ROBOT_H\n\n" + "\n".join(lines) + "\n\n#endif\n"


def _numbers(model: Model) -> str:
    """Return robot.c with the names, start values and minimum values of the variables."""
    real, least = CScalar("float64").literal, [variable.least for variable in model.variables]
    columns = {
        "const char *const robot_names": [string_literal(each.name) for each in model.variables],
        "const double robot_start": [real(each.start or 0.0) for each in model.variables],
        "const double robot_least": ["-HUGE_VAL" if low is None else real(low) for low in least],
    }
    tables = [f"{name}[ROBOT_VARIABLES] = {{\n    " + ",\n    ".join(each) + "};\n" for name, each in columns.items()]
    what = comment(f"{MARK}. Names, start values and minimum values of the variables, by value reference.")
    return "\n".join([f'{what}#include "robot.h"\n\n#include <math.h>\n', *tables])


VERSIONS = (2, 3)
_SUFFIX = ".fmu"
_DESCRIPTION = "modelDescription.xml"
_MAX_HEADER_BYTES = 10_000  # bytes of a description that contain the generation tool
_MAX_NAME_LENGTH = 60  # maximum characters of the library name
_DATE = (1980, 1, 1, 0, 0, 0)  # of every member, so that equal content gives equal files


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
    """Write the dynamics as a functional mock-up unit for model exchange and co-simulation; return [path].

    Inputs are the forces ``tau`` (N m, N). Outputs are the states q and v and the accelerations a. With ``inverse``,
    which robots with loops do not support, q, v and a are inputs and tau is the output. ``names`` adds outputs:
    "joint_wrenches:LINK" (without LINK: of all links), "pose:PLACE", "velocity:PLACE", "acceleration:PLACE",
    "center_of_mass", "kinetic_energy", "potential_energy". ``parameters`` are tunable robot parameters, as in
    ``robot.parametric``. ``external`` contains the links whose external wrenches are inputs. ``q0`` (nq,) and ``v0``
    (nv,) are the start values, with the defaults of ``simulate``. Co-simulation uses equal RK4 steps of at most
    ``step`` (s), as in ``simulate``; ``step`` is also a parameter.

    ``version`` is the FMI version, 3 or 2. The file contains the C sources and, unless ``binary`` is False, a library
    for this machine, which requires a C compiler. Directional derivatives are exact. With ``overwrite=False``, an
    existing file raises ModelError. If the robot has loops, q0 and v0 are projected onto the closed loops. See
    docs/deploy/fmi.md.

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
        raise ModelError(f"is {version!r}", argument="version", value=version, where=where, allowed=allowed)
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
    """Return the content of each file in the FMU, by path."""
    identifier = words(model.robot.name)[:_MAX_NAME_LENGTH]
    about = about_robot(model.robot, (), {parameter.name: parameter.value for parameter in model.settings.free})
    where = model.robot.name
    library, program = (library_path(identifier, fmi, where), compiler(where)) if binary else ("", [])
    texts = source_files(model, identifier, "", fmi, about)
    sources = [name for name in texts if name.endswith(".c")]
    # The token, formatted as a GUID, is a hash of all other content.
    everything = [model_description(model, identifier, "", fmi, sources), *texts.values()]
    digits = hashlib.sha256("\0".join(everything).encode()).hexdigest()
    token = f"{{{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}}}"
    texts["robot.h"] = _header(model, identifier, token, fmi)
    members = {_DESCRIPTION: model_description(model, identifier, token, fmi, sources)}
    members["documentation/index.html"] = page(model, about)
    members |= {f"sources/{name}": text for name, text in texts.items()}
    if fmi == 3:
        members["sources/buildDescription.xml"] = build_description(identifier, sources)
    contents = {name: text.encode() for name, text in members.items()}
    if binary:
        with tempfile.TemporaryDirectory() as folder:
            contents[library] = build_library(program, Path(folder), texts, where)
    return contents


def _checked_path(path: str | Path, overwrite: bool) -> Path:
    """Return the path if the file can be written. Raise ModelError otherwise."""
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
        raise ModelError("the file exists", where=where, fix="choose another name, or pass `overwrite=True`")
    if file.exists() and not _is_own(file):
        message = "the file exists and was not written by Torsor"
        raise ModelError(message, where=where, fix="choose another name")
    return file


def _is_own(file: Path) -> bool:
    """Return whether the model description names Torsor as the generation tool."""
    try:
        with zipfile.ZipFile(file) as archive, archive.open(_DESCRIPTION) as description:
            return f'generationTool="{TOOL} '.encode() in description.read(_MAX_HEADER_BYTES)
    except (OSError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return False
