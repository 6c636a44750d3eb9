"""Optional packages: each is in an extra, ``torsor doctor`` lists it, and errors name extras that exist."""

import ast
import re
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from repository.statements import imports_of
from torsor.cli.doctor import EXTRAS

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "src" / "torsor").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Names of modules that differ from those of their packages.
MODULE = {"pyyaml": "yaml", "pycollada": "collada", "cupy-cuda13x": "cupy", "pin": "pinocchio", "usd-core": "pxr"}
# Comes with others: matplotlib brings pillow and mpl_toolkits, distributed brings cloudpickle, notebooks bring IPython.
BROUGHT = {"PIL", "mpl_toolkits", "cloudpickle", "IPython"}
FOR_DEVELOPERS = {"dev", "docs"}


def modules_of(requirements: list[str]) -> set[str]:
    """Return what packages are imported as; an extra that asks for another one of Torsor's adds nothing of its own."""
    names = {Requirement(each).name for each in requirements} - {"torsor"}
    return {MODULE.get(name, name) for name in names}


USERS = {
    extra: modules_of(requirements)
    for extra, requirements in PROJECT["optional-dependencies"].items()
    if extra not in FOR_DEVELOPERS
}


def imported(path: Path) -> set[str]:
    found = set()
    for node in imports_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif node.module and not node.level:
            found.add(node.module)
    return {name.split(".")[0] for name in found}


def test_everything_that_is_imported_is_asked_for() -> None:
    foreign = set().union(*map(imported, MODULES)) - sys.stdlib_module_names - {"torsor"}
    optional = set().union(*USERS.values(), BROUGHT, modules_of(PROJECT["optional-dependencies"]["dev"]))
    assert foreign <= modules_of(PROJECT["dependencies"]) | optional


def test_doctor_knows_the_packages_of_every_extra() -> None:
    told = {extra: {name for name, (_, own) in EXTRAS.items() if own == extra} for _, extra in EXTRAS.values()}
    assert told == USERS


def test_errors_name_extras_that_exist() -> None:
    texts = [path.read_text() for path in MODULES]
    named = {name for text in texts for name in re.findall(r"torsor\[(\w+)\]", text)}
    named |= {name for text in texts for name in re.findall(r'raise missing\([^\n]+?, "(\w+)"[,)]', text)}
    assert named <= PROJECT["optional-dependencies"].keys()
    assert USERS.keys() <= named
