"""The README's programs and commands run with the packages that its ``pip install`` line brings, and no others."""

import json
import re
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repository.versions import ROOT, requirements

README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCED = re.findall(r"```(\w*)\n(.*?)```", README, flags=re.DOTALL)
BLOCKS = [block for language, block in FENCED if language == "python"]
COMMANDS = [
    shlex.split(line, comments=True)[1:]
    for language, block in FENCED
    for line in block.splitlines()
    if not language and line.startswith("torsor ")
]
SERVES = "view"  # this command ends with Ctrl-C only
OWN = "walk.c3d"  # a recording of the reader
# Modules of other packages cannot be imported, as in an environment without them. The programs print what they say.
RUN = """
import contextlib, io, json, re, sys
absent, blocks, commands = json.loads(sys.stdin.read())

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
reader = {"__name__": "readme"}
for block in blocks:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(block, "README.md", "exec"), reader)
    assert printed.getvalue().splitlines() == re.findall("# -> (.*)", block), printed.getvalue()
from torsor.cli.main import main
for command in commands:
    assert not main(command), command
"""


def installed(declared: list[Requirement]) -> set[str]:
    """Return the names of packages and of those that they require."""
    found: set[str] = set()
    left = list(declared)
    while left:
        each = left.pop()
        name = canonicalize_name(each.name)
        if name in found or (each.marker and not any(each.marker.evaluate({"extra": x}) for x in ("", *each.extras))):
            continue
        try:
            needs = distribution(each.name).requires or ()
        except PackageNotFoundError:
            continue
        found.add(name)
        left += [Requirement(need) for need in needs if "extra ==" not in need]
    return found


def test_the_readme_needs_no_package_that_its_installation_lacks(tmp_path: Path) -> None:
    extras = re.search(r'pip install "\.\[([\w,]+)\]"', README)
    assert extras is not None and {"measure", "doctor"} <= {command[0] for command in COMMANDS}
    present = installed(requirements(tuple(extras[1].split(","))))
    absent = [
        module
        for module, owners in packages_distributions().items()
        if not present & {str(canonicalize_name(owner)) for owner in owners} and module not in ("torsor", "_virtualenv")
    ]
    assert "pinocchio" in absent or "mujoco" in absent or "mypy" in absent
    commands = [command for command in COMMANDS if command[0] != SERVES and OWN not in command]
    program = [sys.executable, "-c", RUN]
    data = json.dumps([absent, BLOCKS, commands])
    done = subprocess.run(program, input=data, cwd=tmp_path, capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 900 and len(README.splitlines()) <= 120
