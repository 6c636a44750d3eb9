"""Imports of every kind point down the layers, form no cycle, and the core works without the add-ons."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shutil import copytree

from repository.statements import imports_of

SOURCE = Path(__file__).parents[2] / "src" / "torsor"

# Packages from the lowest layer up. Each may import itself and what stands before it.
CORE = (
    *("base", "spatial", "mechanism", "formats", "dynamics", "compiler", "geometry", "robot"),
    *("library", "simulation", "control", "optimisation"),
)
# Add-ons, with the other add-ons that each may import besides the core.
ADD_ONS: dict[str, set[str]] = {
    "motion": set(),
    "identification": set(),
    "human": {"motion", "identification"},
    "export": set(),
    "view": set(),
    "reproduce": {"motion", "identification", "human", "export", "view"},
    "cli": {"motion", "identification", "human", "export", "view", "reproduce"},
}
# Core packages that must stay free of mechanics, and the add-on that shows motions and simulates none.
NARROW = {"compiler": {"base"}, "optimisation": {"base"}, "view": {*CORE} - {"control"}}
# Files that import a module whose name is not a literal: the table of public names, subpackages, other distributions.
BY_VARIABLE = {
    *("__init__.py", "base/registry.py", "cli/doctor.py", "compiler/gufunc.py", "formats/dispatch.py"),
}
# Functions that import a module by its name.
BY_NAME = "import_module", "__import__"


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def package(module: str) -> str:
    return module.partition(".")[2].partition(".")[0]


def by_name(call: ast.Call) -> str | None:
    """The module that a call of import_module names: its literal part, or None if the name is a variable."""
    argument = call.args[0]
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0] if isinstance(argument.values[0], ast.Constant) else argument
    return str(argument.value).rstrip(".") if isinstance(argument, ast.Constant) else None


@cache
def imports(module: str) -> tuple[str, ...]:
    """Modules of Torsor that a file imports: at its top, in functions, for type checkers, and by a name."""
    return tuple(_imports(module))


def _imports(module: str) -> Iterator[str]:
    path = MODULES[module]
    for node in imports_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("torsor."))
        else:
            assert not node.level, f"{path}: a relative import hides its layer"
            home = node.module or ""
            names = {f"{home}.{alias.name}" for alias in node.names if home.split(".")[0] == "torsor"}
            yield from (name if name in MODULES else home for name in names)
    if not any(function in path.read_text() for function in BY_NAME):
        return  # without a walk through all expressions, which takes long
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(BY_NAME):
            name = by_name(node)
            if name is None and str(path.relative_to(SOURCE)) not in BY_VARIABLE:
                yield "torsor.VARIABLE"
            elif name is not None and name.split(".")[0] == "torsor":
                yield name


def allowed(own: str) -> set[str]:
    if own in NARROW:
        return NARROW[own] | {own}
    return {own, *CORE, *ADD_ONS[own]} if own in ADD_ONS else {own, *CORE[: CORE.index(own)]}


def test_imports_point_down() -> None:
    wrong = [
        f"{module} imports {name}"
        for module in MODULES
        if package(module) not in ("", "__main__", "_version")
        for name in imports(module)
        if package(name) not in allowed(package(module)) | {"_version"}
    ]
    assert not wrong, "\n".join(wrong)


def test_packages_are_those_of_the_layers() -> None:
    assert {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()} == {*CORE, *ADD_ONS}
    assert {path.stem for path in SOURCE.glob("*.py")} <= {"__init__", "__main__", "_version"}


def test_no_import_cycle_between_files() -> None:
    left = {
        module: {*imports(module)} & MODULES.keys() - {module, "torsor"} for module in MODULES if module != "torsor"
    }
    done = set(left)
    while done:  # remove files that import none of those left, or are imported by none: only cycles remain
        imported = set().union(*left.values())
        done = {name for name, below in left.items() if not below & left.keys() or name not in imported}
        left = {name: below for name, below in left.items() if name not in done}
    assert not left, f"import cycle among {sorted(left)}"


CORE_ALONE = """
import sys
import numpy as np
import torsor

arm = torsor.load("ur5")
q = np.full(6, 0.3)
tau = arm.inverse_dynamics(q, q, q)
assert np.allclose(arm.forward_dynamics(q, q, tau), q)
arm.save("arm.urdf")
assert np.allclose(torsor.load("arm.urdf").inverse_dynamics(q, q, q), tau)
hold = torsor.control.gravity_pd(arm, q, kp=100.0, kd=10.0)
fall = torsor.simulate(arm, q, duration=0.02, controller=hold)
fall.save("fall.npz")
assert np.array_equal(torsor.load_result("fall.npz").q, fall.q)
there = arm.pose(q, "ee_link")
assert torsor.inverse_kinematics(arm, {"ee_link": there}).solved
four_bar = torsor.library.four_bar()
posture = four_bar.closed.assemble([0.5])
assert four_bar.closed.inverse_dynamics(posture, [1.0], [0.0]).shape == (1,)
loaded = {name.split(".")[1] for name in sys.modules if name.startswith("torsor.")}
print(*sorted(loaded))
"""


def test_the_core_works_without_the_add_ons_on_disk(tmp_path: Path) -> None:
    alone = tmp_path / "alone" / "torsor"
    copytree(SOURCE, alone, ignore=lambda folder, names: ADD_ONS.keys() if Path(folder) == SOURCE else {"__pycache__"})
    environment = os.environ | {"PYTHONPATH": f"{alone.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-c", CORE_ALONE]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert not ADD_ONS.keys() & set(done.stdout.split())
