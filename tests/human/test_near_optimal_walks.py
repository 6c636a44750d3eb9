"""Walks from several starts: the best is the least, and the spread contains every near-optimal curve."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from base.schemas import faults
from human.test_stride import _moved
from refusals import refused
from torsor.base.documents import schema_of
from torsor.cli.predictions.prediction import Report
from torsor.cli.predictions.walk import ONE_START, WALK
from torsor.human import NearOptimalWalks, Step, Stride, bent_start, near_optimal_walks, walking
from torsor.human.gait import figures
from torsor.human.gait.curves import Energy, Work
from torsor.human.terms.problem import Samples
from torsor.motion import MotionError, MotionMultistart, MotionResult, many
from torsor.motion.results.solution import Part

# Of the synthetic starts, the best first: objective, how much larger the curves are, step length (m).
WALKS = ((4.40, 1.0, 0.70), (4.43, 1.1, 0.74), (4.48, 0.8, 0.79), (4.60, 2.0, 0.60))
VIOLATED = (4.0, 3.0, 0.50)


def _result(base: MotionResult, objective: float, feasible: bool = True) -> MotionResult:
    outcome = replace(base.outcome, objective=objective, status="optimal", is_solved=feasible, iterations=7)
    result = replace(base, outcome=outcome)
    parts = (Part("energy", 1.0, objective - 1.2, objective - 1.2), Part("effort", 1.0, 1.2, 1.2))
    result.__dict__.update(objective=objective, max_violation=0.0 if feasible else 0.3, parts=parts)
    return result


def _stride(result: MotionResult, size: float, length: float) -> Stride:
    """Return a stride whose curves are those of one random walk, times a size."""
    stride, rng = Stride(result), np.random.default_rng(5)
    count, names = len(stride.s), stride.body.coordinate_names
    waves = size * np.sin(2 * np.pi * (stride.s[:, None] + rng.random(len(names))))
    forces = size * 300 * np.abs(np.sin(2 * np.pi * stride.s[:, None, None] + rng.random((2, 3))))
    zero, empty = np.zeros((count, 2)), np.zeros((count, 2, 3, 3))
    samples = Samples(0.1 * waves, waves, waves, 10 * waves, forces, 0 * forces, empty, stride.s, stride.s, zero, zero)
    energy = Energy(length, stride.body.mass, {"hip": Work(30.0 * size, -10.0)}, 0.0, 0.0, 0.0)
    stride.__dict__.update(samples=samples, energy=energy, steps=2 * (Step(length=length, toe_off=0.25 * size),))
    return stride


@pytest.fixture(scope="module")
def results() -> list[MotionResult]:
    base = _moved(1, 0)
    return [*(_result(base, objective) for objective, _, _ in WALKS), _result(base, VIOLATED[0], feasible=False)]


@pytest.fixture(scope="module")
def found(results: list[MotionResult]) -> NearOptimalWalks:
    """Return five synthetic starts: three near-optimal ones, a worse one, and one that violates its constraints."""
    found = NearOptimalWalks(tuple(results), (2, 0, 1, 3, 4), starts=5)
    sizes = [(size, length) for _, size, length in WALKS]
    found.__dict__["strides"] = tuple(map(_stride, found.near_optimal, *zip(*sizes[:3], strict=True)))
    return found


def test_near_optimal_walks_are_feasible_and_within_two_per_cent(found: NearOptimalWalks) -> None:
    assert [each.objective for each in found.near_optimal] == [4.40, 4.43, 4.48]
    assert found.best.objective == 4.40 and found.stride is found.strides[0]
    closer = replace(found, within=0.01)
    assert [each.objective for each in closer.near_optimal] == [4.40, 4.43]
    assert replace(found, within=0.0).near_optimal == (found.best,)
    assert repr(found) == "<NearOptimalWalks: 5 starts, 3 walks within 2 % of the best objective>"
    assert found.labels[:2] == ("posture, seed 1", "initial guess")


def test_the_first_result_is_feasible(results: list[MotionResult]) -> None:
    for given, words in ((results[4:], "the first result violates its constraints"), ([], "no results")):
        with refused(words):
            NearOptimalWalks(tuple(given), (0,) * len(given))


def test_the_spread_contains_every_near_optimal_curve_and_touches_one_everywhere(found: NearOptimalWalks) -> None:
    assert set(found.curves) == {each.curve for each in found.stride.as_reference()}
    for name, spread in found.curves.items():
        own = [next(each for each in stride.as_reference() if each.curve == name) for stride in found.strides]
        curves = np.array([each.mean[::4] for each in own])  # every per cent of 401 instants
        assert spread.best.shape == (101,) and spread.unit == own[0].unit
        np.testing.assert_allclose(curves[0], spread.best, rtol=0, atol=1e-12)
        assert (curves >= spread.least - 1e-12).all() and (curves <= spread.most + 1e-12).all()
        np.testing.assert_allclose(np.abs(curves - spread.least).min(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(np.abs(curves - spread.most).min(axis=0), 0.0, atol=1e-12)
        factor = 1.1**2 - 0.8**2 if spread.kind == "power" else 1.1 - 0.8  # a power has two factors of the size
        np.testing.assert_allclose(spread.width, factor * np.abs(spread.best), rtol=1e-9, atol=1e-12)


def test_the_spread_of_the_step_is_that_of_the_near_optimal_walks(found: NearOptimalWalks) -> None:
    length, double, work, energy = (
        found.quantities[name] for name in ("step_length", "double_support", "positive_work", "metabolic_energy")
    )
    assert (length.best, length.least, length.most, length.unit) == (0.70, 0.70, 0.79, "m")
    assert (double.best, double.least, double.most) == pytest.approx((25.0, 20.0, 27.5))
    mass = found.stride.body.mass
    assert (work.least, work.most) == pytest.approx((24.0 / (0.79 * mass), 33.0 / (0.74 * mass)))
    assert (energy.best, energy.most, energy.unit) == pytest.approx((3.20, 3.28, "J/(kg m)"))


def test_tables_say_what_is_known(found: NearOptimalWalks) -> None:
    shown = " ".join(str(found).split())
    for words in (
        "5 starts, 3 walks within 2 % of the best objective",
        "initial guess │ 4.4300 │ 0.68 %",
        "violates constraints",
        "spread over 3 near-optimal walks",
        "step length │ 0.700 │ 0.700 │ 0.790 │ m",
        "knee flexion",
    ):
        assert words in shown, words
    alone = replace(found, within=0.0)
    alone.__dict__["strides"] = found.strides[:1]
    assert "one near-optimal walk, no spread" in alone.report()
    assert "3 of 4 starts (stopped)" in repr(replace(found, results=found.results[:3], seeds=(0, 1, 2), starts=4))
    assert "0.7 to 0.79 m" in found._repr_html_()


def test_documents_follow_their_schema(found: NearOptimalWalks, tmp_path: Path) -> None:
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert document == json.loads(json.dumps(found.to_dict())) and faults(document, schema_of(found.kind)) == []
    assert set(document) <= set(schema_of(found.kind)["properties"])
    assert [row["is_near_optimal"] for row in document["results"]] == [True, True, True, False, False]
    assert document["quantities"]["step_length"] == {"best": 0.7, "least": 0.7, "most": 0.79, "unit": "m"}
    found.save(tmp_path / "walks.csv")
    head, *rows = (tmp_path / "walks.csv").read_text().splitlines()
    assert "knee flexion least [degrees]" in head and len(rows) == 101


def test_the_figure_has_bands_of_the_near_optimal_walks(
    found: NearOptimalWalks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "SHOWN_CURVES", ("knee_flexion",))  # one panel takes less time than all
    monkeypatch.setattr(figures, "_postures", lambda axes, stride: None)
    figure = found.plot()
    knee = next(axes for axes in figure.axes if axes.get_title().startswith("knee flexion"))
    band, _ = knee.collections  # the other is that of people
    y = band.get_paths()[0].vertices[:, 1]
    spread = found.curves["knee_flexion"]
    assert (y.min(), y.max()) == pytest.approx((spread.least.min(), spread.most.max()))
    assert "light blue: all near-optimal walks" in figure.get_suptitle()


def test_searches_start_from_the_guess_and_from_bent_postures(
    results: list[MotionResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, given = results[0].problem, dict[str, Any]()

    def searches(self: object, **asked: Any) -> MotionMultistart:
        given.update(asked)
        return MotionMultistart((results[4], results[1], results[0]), (2, 0, 1))  # as found before Ctrl-C

    monkeypatch.setattr("torsor.motion.MotionProblem.multistart", searches)
    found = near_optimal_walks(problem, 4, seed=6, within=0.01, offset=0.1, workers=2, iterations=9)
    expected = [problem.guess(), *(bent_start(problem, seed, 0.1) for seed in (6, 7, 8))]
    assert np.array_equal(given.pop("starts"), expected) and given == {"workers": 2, "iterations": 9}
    near_optimal_walks(problem, 1, start=results[0])
    assert given["starts"] == [results[0]]
    assert [each.objective for each in found] == [4.40, 4.43, 4.0] and found.seeds == (1, 0, 2)  # feasible ones first
    assert (found.starts, found.seed, found.within, len(found)) == (4, 6, 0.01, 3)
    monkeypatch.setattr(
        "torsor.motion.MotionProblem.multistart", lambda self, **asked: MotionMultistart((results[4],), (0,))
    )
    with refused(fix="problem.solve() names", error=MotionError) as raised:
        near_optimal_walks(problem, 1)
    assert raised.value.result is not None and raised.value.violation == 0.3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"starts": 0}, "starts"),
        ({"seed": -1}, "seed"),
        ({"within": -0.1}, "within"),
        ({"side": "up"}, "side"),
    ],
)
def test_mistakes_are_told_before_the_searches(given: Any, words: str, results: list[MotionResult]) -> None:
    with refused(words):
        near_optimal_walks(results[0].problem, **given)


def test_only_walks_are_taken() -> None:
    ends = [torsor.motion.Start(q=0.0, v=0.0), torsor.motion.End(q=1.0, v=0.0)]
    arm = torsor.motion.MotionProblem(
        torsor.library.planar_chain(1), torsor.motion.Phase(1.0), torsor.motion.Effort(), ends
    )
    with refused(value="motion", allowed="walking"):
        near_optimal_walks(arm)


def test_one_start_says_so_and_several_show_their_spread(
    found: NearOptimalWalks, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("torsor.cli.predictions.walk.stride_report", lambda result, given: Report(print, ("stride",)))
    monkeypatch.setattr(
        "torsor.cli.predictions.walk.near_optimal_walks",
        lambda problem, starts, **given: asked.append((starts, given)) or found,
    )
    monkeypatch.setattr("torsor.motion.MotionProblem.solve", lambda self, **given: found.best)
    free = walking()
    assert WALK.solved(free, {}, {"iterations": 3})[1].tables == ("stride", ONE_START)
    result, report = WALK.solved(free, {"starts": 5, "workers": 2}, {"iterations": 3})
    assert (
        result is found.best and report.tables == ("stride", found) and asked == [(5, {"workers": 2, "iterations": 3})]
    )
    assert report.figures["near_optimal"]["starts"] == 5


@pytest.mark.parametrize(
    ("given", "words"),
    [({"starts": 0}, "starts"), ({"workers": 2}, "--workers needs several initial guesses")],
)
def test_options_of_starts_are_checked(given: Any, words: str) -> None:
    with refused(words):
        WALK.problem(given)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*between the nodes")
def test_two_starts_of_a_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ctrl_c: Any) -> None:
    problem = walking()
    found = near_optimal_walks(problem, 2, workers=2)
    assert len(found) == 2 and sorted(found.seeds) == [0, 1]
    assert found.best.objective == min(each.objective for each in found if each.is_feasible)
    for stride in (Stride(each) for each in found.near_optimal):
        for own in stride.as_reference():
            spread = found.curves[own.curve]
            assert (own.mean[::4] >= spread.least - 1e-12).all() and (own.mean[::4] <= spread.most + 1e-12).all()
    found.save(tmp_path / "walks.npz")
    again = torsor.load_result(tmp_path / "walks.npz")
    assert repr(again) == repr(found) and again.seeds == found.seeds
    assert all(np.array_equal(a.x, b.x) for a, b in zip(again, found, strict=True))
    assert faults(found.to_dict(), schema_of(found.kind)) == []

    alone = []

    def pressed_after_the_first(*arguments: Any) -> Any:
        alone.append(solve_one(*arguments))
        ctrl_c()
        return alone[0]

    solve_one = many._solve_one
    monkeypatch.setattr(many, "_solve_one", pressed_after_the_first)
    stopped = near_optimal_walks(problem, 3, seconds=600.0)  # with a time limit, starts are not solved in one batch
    assert stopped.seeds == (0,) and "1 of 3 starts (stopped)" in repr(stopped)
    assert stopped.best.objective == alone[0].solution(problem).objective
