"""A continuation and a Pareto front are results: indexed like lists, saved, read and drawn together."""

from pathlib import Path

import pytest

import torsor
from refusals import refused
from torsor import motion

ARM = torsor.library.two_link()
ENDS = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]


def reach(limit: object, cost: object = None) -> motion.MotionProblem:
    limits = motion.Torques(upper=10.0 if isinstance(limit, str) else float(limit))  # type: ignore[arg-type]
    return motion.MotionProblem(ARM, motion.Phase((0.1, 2.0), points=6), cost or motion.Time(), [*ENDS, limits])


@pytest.fixture(scope="module")
def found() -> motion.MotionSequence:
    return motion.continuation(reach, (each for each in (10.0, 15.0)))


def test_a_continuation_is_indexed_like_a_list(found: motion.MotionSequence) -> None:
    first, second = found
    assert len(found) == 2 and found[-1] is second and list(found) == [first, second]
    assert found[1:].values == (15.0,) and found[1:][0] is second and second in found
    assert (found.values, found.parameter) == ((10.0, 15.0), "value")
    with pytest.raises(IndexError):
        found[2]


def test_a_front_reads_back_and_is_drawn_as_one(tmp_path: Path) -> None:
    both = motion.MotionProblem(ARM, motion.Phase((0.1, 2.0), points=6), [motion.Time(), motion.Effort()], ENDS)
    front = motion.pareto(both, [0.99, 0.9])
    front.save(tmp_path / "front.npz")
    again = torsor.load_result(tmp_path / "front.npz")
    assert repr(again) == repr(front) and (again.values, again.parameter) == ((0.99, 0.9), "weight")
    assert [each.T for each in again] == [each.T for each in front]
    left, right = again.plot().axes
    assert (left.get_xlabel(), left.get_ylabel(), right.get_xlabel()) == ("Time", "Effort", "weight")


def test_values_that_are_no_numbers_are_kept_as_text(tmp_path: Path) -> None:
    named = motion.continuation(reach, ["slow"])
    named.save(tmp_path / "named.csv")
    assert (tmp_path / "named.csv").read_text().splitlines()[1].startswith("slow,")
    assert named.to_dict()["results"][0]["value"] == "slow"
    assert len(named.plot().axes) == 2


def test_a_continuation_of_functions_needs_its_function_again(tmp_path: Path) -> None:
    def smooth(value: float) -> motion.MotionProblem:
        return reach(value, motion.ExpressionCost(function=lambda node: node.tau[0] ** 2))

    motion.continuation(smooth, [10.0, 12.0]).save(tmp_path / "own.npz")
    with refused(what="does not contain its problem"):
        torsor.load_result(tmp_path / "own.npz")
    assert len(torsor.load_result(tmp_path / "own.npz", problem=smooth)) == 2


def test_a_continuation_without_values_is_empty_and_says_so(tmp_path: Path) -> None:
    none = motion.continuation(reach, [])
    assert len(none) == 0 and repr(none) == "<MotionSequence: no results>" and none._repr_html_()
    with refused(what="the sequence has no results"):
        none.save(tmp_path / "none.npz")
