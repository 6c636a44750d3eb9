"""The repository keeps its own rules: documented exports, imports that point down, a README that runs."""

import inspect
import os
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

import torsor
from torsor import library
from torsor.dynamics import ALGORITHMS
from torsor.robot.accessors import CLASSES
from torsor.robot.method_names import ACCESSORS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "torsor"
MODULES = sorted(SOURCE.rglob("*.py"))

# The public names that scripts and acceptance checks call, as far as this version has them.
NAMES = [
    "load",
    "load_result",
    "from_dh",
    "from_mdh",
    "from_screws",
    "build",
    "DHLink",
    "MDHLink",
    "library",
    "compile",
    "cache",
    "simulate",
    "simulation.rollout",
    "inverse_kinematics",
    "analytic_inverse_kinematics",
    "export.c",
    "export.cpp",
    "export.js",
    "export.ros2",
    "export.fmi",
    "identify",
    "sweep",
    "motion.MotionProblem",
    "motion.retime",
    "ParallelRobot",
]
ATTRIBUTES = [
    "to",
    "nq",
    "nv",
    "links",
    "joint_names",
    "link_names",
    "coordinate_names",
    "lower",
    "upper",
    "velocity_limit",
    "effort_limit",
    "gravity",
    "neutral",
    "save",
    "with_gravity",
    "with_frame",
    "with_payload",
    "with_friction",
    "fix",
    "attach",
    "subtree",
    "inverse_dynamics",
    "mass_matrix",
    "bias_force",
    "gravity_force",
    "coriolis_matrix",
    "joint_wrenches",
    "poses",
    "jacobian",
    "kinetic_energy",
    "potential_energy",
    "center_of_mass",
    "integrate",
    "with_loop",
    "with_active",
    "parametric",
    "forward_dynamics",
    "hybrid_dynamics",
    "force_rate",
    "operation_count",
    "function",
    "equations",
    "pose",
    "velocity",
    "acceleration",
    "momentum",
    "difference",
    "wrench_at",
    "with_spring",
    "with_motor",
    "without_friction",
    "derivatives.inverse_dynamics",
    "derivatives.forward_dynamics",
    "derivatives.joint_wrenches",
    "derivatives.hybrid_dynamics",
    "derivatives.velocity",
    "derivatives.acceleration",
    "derivatives.hessian",
    "derivatives.jvp",
    "derivatives.vjp",
    "closed.assemble",
    "closed.active",
    "closed.mobility",
    "closed.error",
    "closed.jacobian",
    "closed.inverse_dynamics",
    "closed.forward_dynamics",
    "closed.loop_wrenches",
    "closed.joint_wrenches",
    "closed.derivatives.inverse_dynamics",
    "inertial.regressor",
    "inertial.values",
    "inertial.names",
    "inertial.base",
    "inertial.replaced",
    "centroidal.momentum_matrix",
    "centroidal.momentum_matrix_rate",
    "centroidal.jacobian",
    "centroidal.inertia",
    "shapes.distances",
    "shapes.allowed",
    "task.manipulability",
    "task.null_space",
    "task.mass_matrix",
    "task.jacobian_rate",
]


FIRST_CALL = """
import sys
import numpy as np
import torsor

robot, passed = torsor.library.six_axis_arm(), set()
sys.setprofile(lambda frame, event, _: passed.add(frame.f_code.co_filename))
robot.inverse_dynamics(*np.zeros((3, 6)))
sys.setprofile(None)
print(sum(name.startswith(torsor.__path__[0]) for name in passed))
"""


def test_a_first_call_passes_through_few_files(tmp_path: Path) -> None:
    counts = []
    for _ in range(2):  # the first process compiles, the second finds the code on disk
        environment = os.environ | {"TORSOR_CACHE": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", FIRST_CALL], capture_output=True, env=environment, check=True)
        counts.append(int(done.stdout))
    assert counts[0] <= 36  # sines of huge angles, registers and stages have files of their own
    assert counts[1] <= 13


def test_each_file_begins_with_what_it_is_about() -> None:
    begins = re.compile(r'(#.*\n)*r?"{3}\S')
    assert not [path for path in MODULES if not begins.match(path.read_text())]


def test_exports_exist_and_are_documented() -> None:
    for name in torsor.__all__:
        assert hasattr(torsor, name)
        if name != "__version__":
            assert inspect.getdoc(getattr(torsor, name))
    for name in library.__all__:
        assert "Example:" in (inspect.getdoc(getattr(library, name)) or ""), name


def test_the_public_names_hold() -> None:
    robot = torsor.library.two_link()
    for name in NAMES:
        attrgetter(name)(torsor)
    for name in ATTRIBUTES:
        attrgetter(name)(robot)


def test_dir_shows_the_public_names_and_no_modules_by_accident() -> None:
    assert dir(torsor) == sorted(torsor.__all__)


def test_every_method_of_a_robot_is_in_one_file_with_an_example() -> None:
    for owner in CLASSES.values():
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            assert name.startswith("_") or ">>>" in (inspect.getdoc(method) or ""), f"{owner.__name__}.{name}"
    own = set(vars(torsor.Robot))
    for name, method in inspect.getmembers(torsor.Robot, inspect.isfunction):
        if not name.startswith("_") and name not in ("neutral", "place", "joint"):
            assert name in own, f"{name} is not spelled out in robot.py"
            assert ">>>" in (inspect.getdoc(method) or ""), name


def test_every_accessor_is_an_attribute_of_a_robot() -> None:
    robot = torsor.library.four_bar()
    for name, owner in CLASSES.items():
        assert isinstance(attrgetter(name)(robot), owner) and attrgetter(name)(robot) is attrgetter(name)(robot)
        assert set(ACCESSORS[name]) <= set(dir(owner))


METHODS = {each: f"{accessor}.{name}" for accessor, names in ACCESSORS.items() for name, each in names.items()}


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name in METHODS or hasattr(torsor.Robot, name)])
def test_a_method_takes_what_its_algorithm_takes(name: str) -> None:
    accessor, _, method_name = METHODS.get(name, name).rpartition(".")
    owner = CLASSES[accessor] if accessor else torsor.Robot
    algorithm, method = ALGORITHMS[name], inspect.signature(getattr(owner, method_name)).parameters
    names = [each for each in method if each != "self"]
    inputs = [{"multipliers": "forces"}.get(each, each) for each in algorithm.inputs if each != "share"]
    assert names[: len(inputs)] == inputs
    assert ("external" in names) == algorithm.external
    assert ("points" in names) == algorithm.keeps
    assert ("forced" in names) == algorithm.hybrid
    assert ("place" in names) == algorithm.at_place
    assert ("axes" in names) == algorithm.in_axes
    assert ("point" in names) == algorithm.at_point
    assert ("higher" in names) == algorithm.rates


PAGES = ["README.md", *(str(each.relative_to(ROOT)) for each in sorted((ROOT / "docs").glob("**/*.md")))]


RUN = [page for page in PAGES[1:] if "tutorials" not in page]  # those and the README have tests of their own
LONG_PAGES = {
    *("theory/moving_base", "compute/loops", "compute/parallel", "simulate/contact", "plan/motion", "plan/retiming"),
    *("identify/identification", "people/measured_people"),
}
LONG = {f"docs/{page}.md" for page in LONG_PAGES}
# Optional packages of pages
NEEDS = {
    "docs/simulate/whole_body.md": "daqp",
    "docs/compute/usd.md": "pxr",
    "docs/people/gait_laboratory.md": "c3d",
}


@pytest.mark.parametrize("page", [pytest.param(page, marks=pytest.mark.slow) if page in LONG else page for page in RUN])
def test_documents_run_and_print_what_they_say(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if page in NEEDS:
        pytest.importorskip(NEEDS[page], reason=f"{NEEDS[page]} is not installed")
    monkeypatch.chdir(tmp_path)
    reader: dict[str, object] = {}  # who follows a page types one block after the other
    for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL):
        exec(compile(block, page, "exec"), reader)
        assert capsys.readouterr().out.splitlines() == re.findall(r"# -> (.*)", block)


def test_links_in_the_documents_lead_somewhere() -> None:
    for page in [ROOT / "CONTRIBUTING.md", ROOT / "docs/llms.txt", *(ROOT / each for each in PAGES)]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_site_has_every_page_and_every_public_name() -> None:
    site, pages = (ROOT / "mkdocs.yml").read_text(), {each.removeprefix("docs/") for each in PAGES[1:]}
    assert pages == set(re.findall(r"[\w/]+\.md", site))
    reference = {
        re.sub(r"\.(\w+)\.\1$", r".\1", name)  # a function in a file of its own name
        for page in (ROOT / "docs/reference").glob("*.md")
        for name in re.findall("::: (.*)", page.read_text())
    }
    for name in torsor.__all__:
        if not inspect.ismodule(getattr(torsor, name)) and name != "__version__":
            assert any(each.endswith(f".{name}") for each in reference), name
    for module in (
        torsor.library,
        torsor.control,
        torsor.motion,
        torsor.human,
        torsor.identification,
        torsor.spatial,
        torsor.human.recordings,
    ):
        public = {f"{module.__name__}.{name}" for name in module.__all__ if callable(getattr(module, name))}
        assert public <= reference


def test_the_reference_has_every_member_of_a_robot() -> None:
    pages = "".join(path.read_text() for path in (ROOT / "docs/reference").glob("robot*.md"))
    inherited = set(vars(torsor.mechanism.Mechanism))  # the overview has all of them
    for name in vars(torsor.Robot).keys() - inherited:
        assert name.startswith("_") or re.search(rf"(torsor\.Robot\.|members: .*\b){name}\b", pages), name


def test_calls_of_the_cheat_sheet_run_as_they_are_printed() -> None:
    rng = np.random.default_rng(0)
    robot = torsor.library.ur5().to(device="casadi")
    q, v, a, j, tau = rng.normal(size=(5, 6))
    known = {"torsor": torsor, "robot": robot, "q": q, "v": v, "a": a, "j": j, "tau": tau, "external": np.zeros((6, 6))}
    elsewhere = r"\.\.\.|^`?torsor\.(?!load\b)|\.(save|view|draw|animate|plot|to)\(|torsor\.export|load|^\.|reference"
    done = 0
    for row in re.findall(r"^\|.*\|(.*)\|$", (ROOT / "docs/start/cheat_sheet.md").read_text(), flags=re.MULTILINE):
        for call in (each for each in re.findall(r"`([^`]*)`", row) if "(" in each and not re.search(elsewhere, each)):
            exec(call if "robot" in call else f"robot.{call}", dict(known))
            done += 1
    assert done > 25


def test_the_list_of_benchmarks_has_every_script() -> None:
    commands = (ROOT / "docs/deploy/benchmarks.md").read_text("utf-8").partition("## Commands\n")[2]
    items = re.findall(r"^- .*$", commands.partition("\n## ")[0], flags=re.MULTILINE)
    listed = {name for item in items for name in re.findall(r"`([^`]*)`", item)}
    scripts = {path.name for path in (ROOT / "benchmarks").glob("*.py")}
    assert listed == scripts - {"speed.py"} | {"make bench"}  # which runs speed.py


def test_the_list_of_examples_has_every_example() -> None:
    listed = (ROOT / "examples" / "README.md").read_text()
    for path in (ROOT / "examples").glob("*.*"):
        assert path.name in ("README.md", *re.findall(r"\]\(([^)]*)\)", listed)) or path.name[0].isdigit(), path.name
