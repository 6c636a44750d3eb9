"""``torsor simulate`` with contact and limits: same results as in Python, rest depth, rejected input."""

import json
from pathlib import Path

import numpy as np
import pytest

import torsor
from torsor import Shape
from torsor.cli.main import main
from torsor.mechanism import Link
from torsor.robot.load import build
from torsor.simulation import Contact, Trajectory

G = 9.81


@pytest.fixture
def ball(tmp_path: Path) -> Path:
    link = Link("ball", 1.0, np.zeros(3), 4e-3 * np.eye(3), shapes=(Shape("sphere", (0.1,)),))
    path = tmp_path / "ball.toml"
    build("ball", [link], [], base="floating").save(path)
    return path


START = ("--q0", "0", "0", "0.1", "0", "0", "0", "1")


def test_a_ball_rests_at_the_depth_of_the_spring_with_its_weight(ball: Path, tmp_path: Path) -> None:
    document = tmp_path / "rest.json"
    options = ("--contact", "hard", "--stiffness", "1e4", "--step", "0.002", "--json", str(document))
    assert main(["simulate", str(ball), *START, *options]) == 0
    found = json.loads(document.read_text())
    assert found["q"][-1][2] == pytest.approx(0.1 - G / 1e4, abs=1e-9)
    assert found["external"][-1][0][5] == pytest.approx(G, rel=1e-6)
    assert found["settings"]["contact"]["kind"] == "hard"


def test_compliant_contact_on_a_slope_is_that_of_python(ball: Path, tmp_path: Path) -> None:
    output = tmp_path / "roll.npz"
    settings = ("--duration", "0.05", "--step", "0.0005", "--output", str(output))
    options = (
        "--contact",
        "compliant",
        "--stiffness",
        "1e4",
        "--exponent",
        "1",
        "--ground-pitch",
        "0.2",
        "--slip",
        "0.1",
    )
    start = ("--q0", "0", "0", "0.102", "0", "0", "0", "1")
    assert main(["simulate", str(ball), *start, *settings, *options]) == 0
    pose = torsor.spatial.make_pose(torsor.spatial.from_rpy([0.0, 0.2, 0.0]))
    contact = Contact(Shape("plane", pose=pose), stiffness=1e4, exponent=1.0, slip=0.1)
    robot = torsor.load(ball)
    expected = torsor.simulate(robot, [0, 0, 0.102, 0, 0, 0, 1], None, 0.05, step=5e-4, contact=contact)
    found = Trajectory.load(output)
    assert np.array_equal(found.q, expected.q) and found.q[-1, 0] > 0


def test_limits_let_drives_saturate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "quadruped", "--duration", "0.005", "--limits", "--tau", *["30"] * 18]) == 0
    assert "drives that saturate" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--friction", "0.5"], "--friction needs contact; fix: add --contact, one of compliant, hard"),
        (["--no-ground"], "--no-ground needs contact"),
        (["--contact", "hard", "--slip", "0.1"], "hard contact does not use --slip; allowed: --stiffness, --friction"),
        (["--contact", "compliant", "--sweeps", "3"], "compliant contact does not use --sweeps"),
        (["--contact", "hard", "--friction", "-1"], "contact: --friction is -1.0; allowed: a finite number, 0 or more"),
        (["--contact", "hard", "--stiffness", "nan"], "contact: --stiffness is nan"),
        (["--contact", "hard", "--ground-pitch", "2"], "contact: --ground-pitch is 2.0"),
        (
            ["--contact", "hard", "--ground-pitch", "0.1", "--no-ground"],
            "--ground-pitch and --no-ground are both given",
        ),
        (["--contact", "hard", "--no-ground"], "no pair of shapes can touch"),
        (["--contact", "hard", "--shapes", "foot"], "no link, frame or shape 'foot'"),
        (["--contact", "hard", "--pair", "ball", "ball"], "move together"),
        (
            ["--contact", "hard", "--method", "implicit"],
            "omit --method, or use --contact compliant",
        ),
        (["--limits"], "no position limits"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: list[str], expected: str, ball: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", str(ball), *START, *options]) == 1
    assert expected in capsys.readouterr().err


def test_a_body_that_is_fixed_touches_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, shape = tmp_path / "ball.urdf", "<collision><geometry><sphere radius='0.1'/></geometry></collision>"
    path.write_text(f"<robot name='ball'><link name='ball'>{shape}</link></robot>")
    assert main(["simulate", str(path), "--contact", "hard"]) == 1
    assert "no moving link has a collision shape; fix: load the robot with --base floating" in capsys.readouterr().err
