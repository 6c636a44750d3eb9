"""The built wheel works in an empty environment: complete, typed, without extras and with each, examples included.

A clean environment is a virtual environment that sees the wheel, and links to the installed packages that the wheel
asks for, no others: nothing is downloaded.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distributions
from pathlib import Path
from urllib.request import urlopen

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
SOURCE, EXAMPLES = ROOT / "src" / "torsor", ROOT / "examples"
pytestmark = pytest.mark.slow

# One call for each extra. Without the extra its error names it; with it, it works, or says what else is missing.
FEATURES = {
    "mjcf": 'torsor.load("arm.xml")',
    "yaml": 'torsor.load("arm.yaml")',
    "mocap": 'recordings.save(recordings.Markers(["a"], [0.0, 0.1], np.ones((2, 1, 3))), "a.c3d")',
    "plot": 'torsor.view.draw(arm, path="arm.png"), fall.plot(), torsor.view.animate(fall, "fall.gif")',
    "view": "torsor.show(arm, open=False, block=False).stop()",
    "jax": 'torsor.robot.autodiff.to_jax(arm, "kinetic_energy")(*np.eye(2))',
    "torch": 'torsor.robot.autodiff.to_torch(arm, "kinetic_energy")(*np.eye(2))',
    "gym": "torsor.simulation.frameworks.gymnasium_environment(environments)",
    "gpu": 'arm.to(device="cuda")',
    "cluster": 'torsor.sweep(json.dumps, [{"obj": 1}], executor="tcp://127.0.0.1:1")',
    "parquet": 'torsor.sweep(json.dumps, [{"obj": 1}], workers=0, output="study.parquet")',
    "completion": 'commands("completion", "bash")',
}
ELSE = {"gpu": "RuntimeError: device", "cluster": "ModelError: sweep: there is no scheduler at 'tcp://127.0.0.1:1'"}
USE = """
import contextlib, io, json, pathlib, sys
import casadi
import numpy as np
import torsor, torsor.robot.autodiff
from torsor.cli.main import main
from torsor.human import recordings

def commands(*arguments):
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        if main(arguments):
            raise ImportError(errors.getvalue())

pathlib.Path("arm.xml").write_text('<mujoco><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>')
pathlib.Path("arm.urdf").write_text('<robot name="arm"><link name="base"/></robot>')
pathlib.Path("arm.yaml").write_text("closed_loop: []")
arm = torsor.library.two_link()
fall = torsor.simulate(arm, duration=0.1)
action = casadi.SX.sym("action", 2)
law, first = (casadi.Function("f", [action], [value], ["action"], ["value"]) for value in (action, action[0]))
environments = torsor.simulation.Environments(arm, 1, law, observation=law, reward=first)
found = {}
for extra, call in json.loads(sys.argv[1]).items():
    found[extra] = ""
    try:
        eval(call)
    except Exception as error:
        found[extra] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""
IMPORT_ALL = """
import importlib, pkgutil, sys
import torsor
names = [each.name for each in pkgutil.walk_packages(torsor.__path__, "torsor.")]
for name in names:
    if name != "torsor.__main__" and not name.startswith("torsor.examples"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            if "pip install" not in str(error):  # it names its extra
                raise
print(len(names), *sys.modules)
"""


class Place:
    """A clean environment with the wheel in it, and a folder away from the repository to work in."""

    def __init__(self, wheel: Path, folder: Path, extra: str) -> None:
        self.folder, self.here = folder, folder / "here"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        self.bin = next(each for each in (folder / "venv" / "bin", folder / "venv" / "Scripts") if each.is_dir())
        self.site = next((folder / "venv").glob("**/site-packages"))
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python")]
        subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
        self.own = next(iter(distributions(name="torsor", path=[str(self.site)])))
        for each in required(self.own, extra):
            for top in {path.parts[0] for path in each.files or () if path.parts[0] not in ("..", "__pycache__")}:
                if not (self.site / top).exists():
                    (self.site / top).symlink_to(Path(str(each.locate_file(top))))
        self.here.mkdir()
        inherited = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
        self.environment = inherited | {
            "HOME": str(folder),
            "TORSOR_CACHE": str(folder / "kernels"),
            "MPLBACKEND": "agg",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s",
        }

    def run(self, *command: str, status: int = 0) -> str:
        """Run a program of the environment and return what it prints; warnings of Python programs are errors."""
        done = subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=self.here,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == status, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr if status else done.stdout


def required(own: Distribution, extra: str) -> list[Distribution]:
    """The installed packages that a distribution asks for with an extra, and those that they ask for."""
    found: dict[str, Distribution] = {}
    left = [(own, extra)]
    while left:
        asking, with_extra = left.pop()
        for each in map(Requirement, asking.requires or ()):
            if each.marker and not each.marker.evaluate({"extra": with_extra}):
                continue
            if each.name not in found:
                found[each.name] = Distribution.from_name(each.name)
                left += [(found[each.name], own) for own in ("", *each.extras)]
    return list(found.values())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with wheel and sdist."""
    pytest.importorskip("hatchling", reason="hatchling is not installed (extra: dev)")
    folder = tmp_path_factory.mktemp("built")
    build(ROOT, folder)
    yield folder
    shutil.rmtree(folder)


def build(root: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return next(built.glob("*.whl"))


@pytest.fixture
def place(wheel: Path, tmp_path: Path) -> Callable[[str], Place]:
    def made(extra: str) -> Place:
        try:
            return Place(wheel, tmp_path / (extra or "bare"), extra)
        except PackageNotFoundError as error:
            pytest.skip(f"{error.name} is not installed (extra: {extra})")

    return made


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def files(folder: Path, below: str) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {f"{below}/{path.relative_to(folder).as_posix()}" for path in found}


def test_a_wheel_has_the_package_and_the_examples_and_nothing_else(wheel: Path) -> None:
    names = names_in(wheel)
    about = {name for name in names if ".dist-info/" in name}
    assert names - about == files(SOURCE, "torsor") | files(EXAMPLES, "torsor/examples")
    assert {"torsor/py.typed", "torsor/view/pages/assets/page.html", "torsor/base/schemas/trajectory.json"} <= names
    assert {"METADATA", "entry_points.txt", "licenses/LICENSE"} <= {name.split("/", 1)[1] for name in about}
    assert wheel.stat().st_size < 3e6
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(next(name for name in about if name.endswith("METADATA"))).decode()
    assert "License-Expression: Apache-2.0" in metadata and "# Torsor" in metadata


def test_a_source_archive_builds_the_same_wheel_and_has_its_tests(built: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    (root,) = tmp_path.iterdir()
    for name in ("conftest.py", "Makefile", "mkdocs.yml", "CONTRIBUTING.md", "tests/repository/test_wheel.py"):
        assert (root / name).is_file(), name
    build(root, tmp_path)
    assert names_in(tmp_path / wheel.name) == names_in(wheel)


def test_without_extras_all_but_the_features_of_extras_works(place: Callable[[str], Place]) -> None:
    bare = place("")
    assert bare.run("torsor", "--version").split() == ["torsor", bare.own.version]
    bare.run("python", "-W", "error", "-c", "import torsor")
    count, *modules = bare.run("python", "-W", "error", "-c", IMPORT_ALL).split()
    assert int(count) > 500
    assert not {"matplotlib", "viser", "trimesh", "mujoco", "yaml"} & set(modules)
    health = json.loads(bare.run("torsor", "doctor", "--json", "-"))
    assert all(check["good"] for check in health["checks"].values())
    assert not any(each["version"] for each in health["extras"])
    assert Path(health["machine"]["package"]).is_relative_to(bare.folder)
    assert "shoulder_pan_joint" in bare.run("torsor", "info", "ur5")
    assert json.loads(bare.run("torsor", "dynamics", "ur5", "mass_matrix", "--json", "-"))
    for command in (("view", "ur5", "--no-browser"), ("demo",), ("simulate", "two_link", "--plot", "fall.png")):
        assert "error: " in (text := bare.run("torsor", *command, status=1)) and 'pip install "torsor[' in text
    assert bare.run("torsor", "view", "ur5", "-o", "arm.html").split() == ["arm.html"]
    found = json.loads(bare.run("python", "-W", "error", "-c", USE, json.dumps(FEATURES)))
    for extra, message in found.items():
        assert message.startswith("ImportError: ") and f'pip install "torsor[{extra}]"' in message, (extra, message)
    assert 'pip install "torsor[plot]"' in bare.run("torsor", "examples", "examples")
    assert files(bare.here / "examples", "") == files(EXAMPLES, "") - {"/README.md"}
    for example in ("02_robots_and_conventions", "03_dynamics_and_derivatives", "10_speed"):
        assert bare.run("python", "-W", "error", f"examples/{example}.py")


@pytest.mark.parametrize("extra", FEATURES)
def test_with_one_extra_its_features_work_and_the_others_name_theirs(place: Callable[[str], Place], extra: str) -> None:
    one = place(extra)
    found = json.loads(one.run("python", "-c", USE, json.dumps(FEATURES)))
    own = found.pop(extra)
    assert not own or own.startswith(ELSE.get(extra, "nothing else")), own
    for other, message in found.items():  # some packages of extras bring those of others
        assert not message or f'pip install "torsor[{other}]"' in message, (other, message)
    health = json.loads(one.run("torsor", "doctor", "--json", "-"))
    assert all(each["version"] for each in health["extras"] if each["extra"] == extra)
    if extra == "plot":
        assert "pip install" not in one.run("torsor", "examples", "examples")
        for example in ("01_first_robot", "05_elastic_joints", "closed_loops"):
            one.run("python", f"examples/{example}.py")
        one.run("torsor", "info", "two_link", "--report", "arm.html")
    if extra == "view":
        page_answers(one)


def page_answers(place: Place) -> None:
    """The viewer of an environment says its address, and its page is there."""
    command = [place.bin / "torsor", "view", "ur5", "--no-browser"]
    environment = place.environment | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=place.here, env=environment, stdout=subprocess.PIPE, text=True) as viewer:
        try:
            assert viewer.stdout is not None
            address = next(word for line in viewer.stdout for word in line.split() if word.startswith("http://"))
            with urlopen(address, timeout=60) as page:
                assert b"<html" in page.read()
        finally:
            viewer.terminate()
