"""Tasks with back loads: solutions in equilibrium, and their reports."""

import json
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.cli.main import main
from torsor.human import Box, lifting, pulling, pushing, sitting_down, standing_up
from torsor.human.body.trunk_strength import SPINE
from torsor.human.ergonomics import assess, write_ergonomic_report
from torsor.motion import MotionResult

# Few nodes, so that these problems are solved fast; what happens between them is not the subject here.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*between the nodes")]


def _is_in_equilibrium(result: MotionResult) -> bool:
    torques, external = result.problem.contact(result)
    truth = result.robot.inverse_dynamics(result.q, result.v, result.a, external=external)
    return bool(np.abs(truth[:, :6]).max() < 1e-8 and np.abs(truth - torques).max() < 1e-8)


@pytest.mark.parametrize("mass", [15.0, 25.0, 30.0])
def test_lifts_of_15_to_30_kg_are_possible_within_the_strength_of_the_trunk(mass: float) -> None:
    result = lifting(box=Box(mass)).solve()
    assert result.is_feasible and _is_in_equilibrium(result)
    names = result.robot.coordinate_names
    spine = [names.index(name) for name in SPINE]
    strength = torsor.human.TrunkStrength(torsor.human.person_of(result.robot, mass))
    limit = strength.extend(result.q[:, spine].sum(axis=1))
    torques = torsor.human.joint_torques(result)[:, spine[:3]]
    assert (-torques / limit[:, None]).max() < 1.03  # between the nodes


def test_more_than_the_trunk_can_lift_is_named() -> None:
    with pytest.raises(torsor.motion.MotionError, match="trunk strength"):
        lifting(box=Box(60.0)).solve()


def test_standing_up_needs_little_more_than_the_published_minimum() -> None:
    """Yoshioka et al. (2007): the sum of the peak hip and knee moments is about 1.53 N m/kg in all optimal motions."""
    sums = []
    for settings in ({"peak": 0.0}, {}, {"duration": 2.5, "peak": 10.0}):
        result = standing_up(**settings).solve()
        assert result.is_feasible
        names, torques = result.robot.coordinate_names, torsor.human.joint_torques(result)
        peaks = [-torques[:, names.index(f"right_{each}_flexion")].min() / 73.0 for each in ("hip", "knee")]
        sums.append(sum(peaks))
    assert sums[0] > 2.2 and sums[1] < 1.75 and 1.50 < sums[2] < 1.60


@pytest.mark.parametrize("make", [pushing, pulling])
def test_pushing_and_pulling_are_in_equilibrium_with_the_force_on_the_hands(make: object) -> None:
    result = make(force=150.0).solve()
    assert result.is_feasible and _is_in_equilibrium(result)
    _, external = result.problem.contact(result)
    feet = [result.robot.link_names.index(f"{side}_foot") for side in ("right", "left")]
    ahead = sum(
        np.einsum("kij,kj->ki", result.robot.pose(result.q, k)[:, :3, :3], external[:, k, 3:])[:, 2] for k in feet
    )
    assert ahead[-1] == pytest.approx(150.0 if make is pushing else -150.0, abs=1.0)  # at rest: the ground balances it


def test_sitting_down_is_standing_up_in_reverse() -> None:
    down, up = sitting_down().solve(), standing_up().solve()
    assert down.is_feasible and _is_in_equilibrium(down)
    assert down.objective == pytest.approx(up.objective, rel=1e-3)


def test_a_box_at_the_side_twists_and_bends_the_trunk() -> None:
    result = lifting(box=Box(10.0), turn=30.0).solve()
    assert result.is_feasible and _is_in_equilibrium(result)
    found = assess(result)
    assert np.abs(found.loads.axial).max() > 5.0 and np.abs(found.loads.lateral).max() > 5.0
    assert not isinstance(found.niosh, str) and found.niosh.origin.asymmetric < 0.93


def test_the_report_of_a_lift_is_one_page_with_limits_and_indices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lift.html"
    command = ["predict", "lift", "--box", "15", "--json", str(tmp_path / "x.json"), "--ergonomics", str(path)]
    assert main(command) in (0, 5)  # 5: optimal at the nodes only
    shown, found = capsys.readouterr().out, json.loads((tmp_path / "x.json").read_text())["ergonomics"]
    for word in ("compression", "lifting index", "Percent capable", "contact forces"):
        assert word in shown
    assert found["niosh"]["index"] > 1.0 and max(found["loads"]["compression"]) > 3400 and 0 < found["capable"] < 1
    assert found["contact"]["left"]["knee"] > 1.0 and found["shift"]["work_duration"] == "short"
    text = path.read_text()
    for word in ("L5/S1", "3400 N", "recommended weight limit", "trunk extension", "<iframe", "data:image/png"):
        assert word in text
    assert "http://" not in text.replace("http://www.w3.org", "") and "<script src" not in text


def test_an_assessment_has_all_its_parts(tmp_path: Path) -> None:
    result = lifting(box=Box(15.0), repetitions=200.0, frequency=1.0, work_duration="long").solve()
    found = assess(result)
    with refused(argument="age", what="cannot be combined with an assessment"):
        write_ergonomic_report(tmp_path / "a.html", found, age="old")
    assert found.shift.duration == "long" and assess(result, repetitions=400.0).dose.linear == 2 * found.dose.linear
    assert 3400 < found.loads.compression.max() < 6400 and found.capabilities[0].capable < 0.9 < found.capable < 1.0
    assert not isinstance(found.niosh, str) and found.niosh.index > 1.0
    assert found.dose.linear > 0 and found.to_dict()["niosh"]["index"] == found.niosh.index
    assert "does not apply" in str(assess(standing_up().solve()).tables()[1])
