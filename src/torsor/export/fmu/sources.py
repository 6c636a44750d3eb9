"""The C sources of an FMU: the functions of the robot, its numbers, and the interface, which is the same for all."""

import tempfile
from importlib.resources import files

from torsor.compiler.c import CScalar, export_c
from torsor.compiler.source import MARK, About, comment
from torsor.export.fmu.interface import CLOSING, STEP
from torsor.export.fmu.model import Model

KERNELS = "kernels"
_INTERFACES = {2: ("fmi2.h", "fmi2.c"), 3: ("fmi3.h", "fmi3.c", "fmi3_absent.c")}


def source_files(model: Model, identifier: str, token: str, fmi: int, about: About) -> dict[str, str]:
    """Return the text of each file by its name."""
    texts = {"robot.h": _header(model, identifier, token, fmi), "robot.c": _numbers(model)}
    texts |= {name: _asset(name) for name in ("model.h", "model.c", *_INTERFACES[fmi])}
    functions = {f"{identifier}_robot_{name}": model.functions[name] for name in _kernels(model, fmi)}
    with tempfile.TemporaryDirectory() as folder:
        header, source, _ = export_c(functions, folder, name=KERNELS, about=about)
        return texts | {path.name: path.read_text(encoding="ascii") for path in (header, source)}


def with_token(texts: dict[str, str], model: Model, identifier: str, token: str, fmi: int) -> dict[str, str]:
    """Return the files with another token, which is in one of them."""
    return texts | {"robot.h": _header(model, identifier, token, fmi)}


def _kernels(model: Model, fmi: int) -> list[str]:
    """Return the names of the functions; FMI 2 has no adjoint derivatives."""
    return [name for name in model.functions if name != "adjoint" or fmi > 2]


def _asset(name: str) -> str:
    text = files("torsor.export.fmu").joinpath("assets", name).read_text(encoding="ascii").replace("\r\n", "\n")
    return comment(f"{MARK}.") + text


def _header(model: Model, identifier: str, token: str, fmi: int) -> str:
    """Return robot.h: the order of the variables, and the names of the functions."""
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
    names = [each.name for each in model.variables]
    places |= {f"ROBOT_{name.upper()}": names.index(name) for name in (STEP, CLOSING) if name in names}
    lines = [f"#define {name} {number}" for name, number in places.items()]
    lines += [f'#define ROBOT_TOKEN "{token}"', f"#define ROBOT_PREFIX {identifier}_"]
    tables = ("names", "start", "least", *_kernels(model, fmi))
    lines += [f"#define robot_{name} {identifier}_robot_{name}" for name in tables]
    declared = ("const char *const robot_names", "const double robot_start", "const double robot_least")
    lines += ["", *(f"extern {each}[ROBOT_VARIABLES];" for each in declared)]
    what = comment(f"{MARK}. Value references where each kind of variable begins (model.h), and names for the linker.")
    return f"{what}#ifndef ROBOT_H\n#define ROBOT_H\n\n" + "\n".join(lines) + "\n\n#endif\n"


def _numbers(model: Model) -> str:
    """Return robot.c: names, values at the start and least values of the variables."""
    real = CScalar("float64").literal
    columns = {
        "const char *const robot_names": [_string(each.name) for each in model.variables],
        "const double robot_start": [real(each.start or 0.0) for each in model.variables],
        "const double robot_least": [
            "-HUGE_VAL" if each.least is None else real(each.least) for each in model.variables
        ],
    }
    tables = [f"{name}[ROBOT_VARIABLES] = {{\n    " + ",\n    ".join(each) + "};\n" for name, each in columns.items()]
    what = comment(f"{MARK}. Names, values at the start and least values of the variables, by value reference.")
    return "\n".join([f'{what}#include "robot.h"\n\n#include <math.h>\n', *tables])


def _string(text: str) -> str:
    r"""Return a literal of C; bytes of UTF-8 and special characters are octal.

    Example:
        >>> _string('q."ö"')
        '"q.\\042\\303\\266\\042"'
    """
    octal = {ord(c) for c in '"\\?'}
    return '"' + "".join(chr(b) if 31 < b < 127 and b not in octal else f"\\{b:03o}" for b in text.encode()) + '"'
