"""Results: profiles, forces, terms of the objective, constraints, sensitivities, files."""

import json
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import motion
from torsor.base.interrupts import OutOfTimeError
from torsor.motion.results.samples import Course
from torsor.motion.terms.term import Constraint, Rows
from torsor.motion.transcription.node import Node
from torsor.optimisation.program import Iteration, Outcome, StoppedError

ENDS = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]


@cache
def robot() -> torsor.Robot:
    return torsor.library.two_link()


def fastest(limit: float = 10.0, points: int = 8) -> motion.MotionProblem:
    limits = motion.Torques(upper=limit)
    return motion.MotionProblem(
        robot(), motion.Phase((0.1, 2.0), points=points), motion.Time(), [*ENDS, limits], name="fastest"
    )


@cache
def found() -> motion.MotionResult:
    return fastest().solve(tolerance=1e-9)


@cache
def via() -> motion.MotionResult:
    """Two phases of their own splines, two objectives, limits with names of their own."""
    phases = motion.Phase((0.1, 2.0), points=7, name="go"), motion.Phase((0.1, 2.0), points=7, degree=4)
    costs = motion.Time(weight=0.9), motion.Effort(weight=0.01, scale=[2.0, 3.0])
    limits = (
        motion.Torques(upper=10.0, name="motors"),
        motion.Torques(upper=5.0, at=[0.5], name="half", phase=1),
        motion.Velocities(upper=8.0, during=(0.2, 0.8), phase="go"),
    )
    middle = motion.End(q=[0.5, -1.0], phase=0)
    problem = motion.MotionProblem(robot(), phases, costs, [*ENDS, middle, *limits], name="via")
    return problem.solve()


@pytest.mark.parametrize("result", [found, via])
def test_forces_and_reactions_are_those_of_the_robot(result: object) -> None:
    r = result()
    assert np.allclose(r.tau, robot().inverse_dynamics(r.q, r.v, r.a), rtol=1e-12, atol=1e-11)
    assert np.allclose(r.tau_rate, robot().force_rate(r.q, r.v, r.a, r.j)[1], rtol=1e-12, atol=1e-9)
    assert np.allclose(r.reactions, robot().joint_wrenches(r.q, r.v, r.a), rtol=1e-12, atol=1e-11)


def test_rates_of_profiles_are_their_derivatives() -> None:
    at, h = np.linspace(0.013, via().T - 0.013, 7), 1e-5
    before, here, after = (via().at(at + step) for step in (-h, 0.0, h))
    for low, high, rate in ((before.q, after.q, here.v), (before.v, after.v, here.a), (before.a, after.a, here.j)):
        assert np.allclose((high - low) / (2 * h), rate, rtol=1e-6, atol=1e-4)


def test_a_motion_is_known_at_any_time_in_any_order() -> None:
    r = via()
    at = r.at(r.times[::-1])
    assert np.allclose(at.q[::-1], r.q, rtol=0, atol=1e-13)
    assert r.at(0.2).q.shape == (2,) and r.at(0.2).reactions.shape == (2, 6)
    assert np.allclose(r.at(r.durations[0]).q, [0.5, -1.0], atol=1e-12)
    assert np.allclose(r.at(r.T).q, [1.0, -1.0], atol=1e-12) and np.allclose(r.at(0.0).q, [0.0, -2.0], atol=1e-12)
    with refused(allowed="times from 0 to"):
        r.at(r.T + 0.1)


def test_the_objective_is_the_sum_of_its_parts() -> None:
    r = via()
    time, effort = r.parts
    assert time.value == pytest.approx(r.T, rel=1e-12) and time.title == "Time"
    assert r.objective == pytest.approx(time.weighted + effort.weighted, rel=1e-12)
    share, weights = np.polynomial.legendre.leggauss(
        40
    )  # splines are smooth between knots: the integral by other nodes
    begun, total = 0.0, 0.0
    for phase, T in zip(r.problem.stages, r.durations, strict=True):
        for low, high in np.lib.stride_tricks.sliding_window_view([0.0, *phase.spline.inner, 1.0], 2):
            middle, half = T * (low + high) / 2, T * (high - low) / 2
            tau = r.at(begun + middle + half * share).tau
            total += half * float(weights @ ((tau / [2.0, 3.0]) ** 2).sum(axis=1))
        begun += T
    assert effort.value == pytest.approx(total, rel=1e-6)


def test_sensitivities_to_torque_limits_follow_the_law_of_similar_motions() -> None:
    """Without gravity a motion r times as fast needs r^2 times the torque: dT/d(limit) = -T / (2 limit)."""
    r = found()
    jacobians = r.constraints["Torques"].sensitivity
    total = sum(value if side == "upper" else -value for (_, side), value in jacobians.items())
    assert total == pytest.approx(-r.T / 20, rel=1e-4)
    assert all(each.sensitivity <= 0 for each in r.active if each.side == "upper")


def test_active_rows_are_at_their_bounds() -> None:
    r = found()
    for each in r.active:
        if each.title == "Torques":
            tau = r.at(each.time).tau[robot().coordinate_names.index(each.label)]
            assert tau == pytest.approx(each.bound, abs=1e-4)


def test_a_duration_at_its_bound_has_a_sensitivity() -> None:
    slow = motion.MotionProblem(robot(), motion.Phase((0.6, 2.0), points=6), motion.Time(), ENDS).solve()
    (row,) = [each for each in slow.active if each.title == "Duration"]
    assert (row.side, row.bound) == ("lower", 0.6) and row.sensitivity == pytest.approx(1.0, rel=1e-6)


def test_violations_between_nodes_are_seen() -> None:
    """Nodes that are few let torques leave their bounds between them; the finer grid finds by how much."""
    limits = motion.Torques(upper=10.0)
    coarse = motion.Phase((0.1, 2.0), points=8, nodes=9)
    with warned(what="between the nodes, Torques is violated by 0.0618 of its scale"):
        r = motion.MotionProblem(robot(), coarse, motion.Time(), [*ENDS, limits]).solve()
    assert r.status == "optimal at the nodes only" and r.is_only_at_nodes and r.is_solved
    nodes = r.problem.stages[0].nodes
    fine = np.concatenate([np.linspace(a, b, 11) for a, b in np.lib.stride_tricks.sliding_window_view(nodes, 2)])
    worst = np.abs(r.at(fine * r.T).tau).max() / 10 - 1
    assert worst > 0.05 and r.max_violation < 1e-6
    assert r.max_violation_fine == pytest.approx(worst, rel=1e-9)
    assert r.constraints["Torques"].fine == r.max_violation_fine


def test_terms_at_moments_are_not_asked_for_between_them() -> None:
    group = via().constraints["half"]
    assert group.count == 2 and group.fine < 1e-6
    assert np.abs(via().tau).max() > 9  # more than the 5 N m that hold at one moment


def test_counts_are_those_of_the_program() -> None:
    counts = via().counts
    assert counts["variables"] + counts["known"] == 2 * 14 + 2
    assert counts["equalities"] == 6 and counts["constraints"] == via().program.m


def test_frozen_coordinates_stay_where_they_are() -> None:
    arm = torsor.library.planar_chain(3)
    names = arm.coordinate_names
    ends = [motion.Start(q=0.0, v=0.0), motion.End(q=0.4, v=0.0)]
    r = motion.MotionProblem(arm, motion.Phase(0.8, points=6), motion.Effort(), ends, frozen={names[1]: 0.3}).solve()
    assert (r.q[:, 1] == 0.3).all() and not r.v[:, 1].any() and r.counts["frozen"] == 1
    assert r.tau.shape == (201, 3) and np.abs(r.tau[:, 1]).min() > 0


@pytest.mark.parametrize("result", [found, via])
def test_the_replayed_motion_is_the_motion(result: object) -> None:
    coarse, fine = result().simulate(steps=500), result().simulate(steps=2000)
    assert fine.q_error < 1e-5 and fine.v_error < 1e-4 and fine.q_error < coarse.q_error / 4
    assert len(fine.trajectory) == 2000 * len(result().durations) + 1
    assert fine.trajectory.times[-1] == pytest.approx(result().T, rel=1e-12)


@dataclass(frozen=True, eq=False, kw_only=True)
class Loose(motion.Unactuated):
    """The second joint has no drive; asked for loosely, so that its force is not zero."""

    def rows(self, node: Node) -> Rows:
        return Rows(node.tau[1], np.array([-100.0]), np.array([100.0]), ("joint2",))


def test_joints_without_a_drive_are_replayed_without_a_force() -> None:
    phase = motion.Phase(1.0, points=6)
    r = motion.MotionProblem(robot(), phase, motion.Effort(), [*ENDS, Loose()]).solve()
    replay = r.simulate(steps=500)
    assert np.abs(r.tau[:, 1]).max() > 0.1 and not replay.trajectory.tau[:, 1].any()
    assert replay.q_error > 0.1 > 1e-3 > np.abs(replay.trajectory.tau[250, 0] - r.at(0.501).tau[0])


def test_a_limit_with_the_name_of_an_unactuated_term_keeps_its_forces() -> None:
    terms = [motion.Torques(upper=100.0, name="drives"), Loose(name="drives")]
    r = motion.MotionProblem(robot(), motion.Phase(1.0, points=6), motion.Effort(), [*ENDS, *terms]).solve()
    tau = r.simulate(steps=500).trajectory.tau
    assert np.abs(tau[:, 0]).max() > 0.1 and not tau[:, 1].any()


def test_a_linkage_is_moved_and_replayed() -> None:
    linkage = torsor.library.four_bar()
    start = linkage.closed.positions(linkage.neutral())[linkage.position_names.index(linkage.active[0])]
    ends = [motion.Start(q=start, v=0.0), motion.End(q=start + 0.8, v=0.0)]
    r = motion.MotionProblem(linkage, motion.Phase(1.0, points=7), motion.Effort(), ends).solve()
    assert r.tau.shape == (201, 1) and np.abs(linkage.closed.error(r.q)).max() < 1e-12
    assert np.allclose(r.tau, linkage.closed.inverse_dynamics(r.q, r.v[:, :1], r.a[:, :1]), rtol=1e-9, atol=1e-9)
    replay = r.simulate(steps=1000)
    assert replay.q_error < 1e-3 and replay.q_error > r.simulate(steps=2000).q_error
    assert r.trajectory().tau.shape == (201, 3)


def test_a_result_reads_back_the_same(tmp_path: Path) -> None:
    r = via()
    r.save(tmp_path / "via.npz")
    back = motion.MotionResult.load(tmp_path / "via.npz")
    assert (back.x == r.x).all() and back.status == r.status and back.log == r.log
    assert (back.tau == r.tau).all() and back.parts == r.parts and back.active == r.active
    assert (motion.MotionResult.load(tmp_path / "via.npz", problem=r.problem).q == r.q).all()


def test_a_result_of_another_problem_is_refused(tmp_path: Path) -> None:
    """All sizes fit, and yet the motion is not the best one of that problem."""
    ends = [motion.Start(q=[0.0], v=0.0), motion.End(q=[1.0], v=0.0)]
    phase, arms = motion.Phase(1.0, points=6), [torsor.library.planar_chain(1), torsor.library.planar_chain(1)]
    arms[1] = arms[1].with_payload(arms[1].link_names[-1], 1.0, [0.5, 0.0, 0.0])
    mine, other = (motion.MotionProblem(arm, phase, motion.Effort(), ends) for arm in arms)
    mine.solve().save(tmp_path / "mine.npz")
    with refused(what="in this problem: it belongs to another"):
        motion.MotionResult.load(tmp_path / "mine.npz", problem=other)


def test_groups_that_give_way_are_written_though_they_differ_in_length(tmp_path: Path) -> None:
    ends = [motion.Start(q=[0.0], v=0.0), motion.End(q=[1.0], v=0.0)]
    limits = [motion.Torques(upper=99.0, name="t"), motion.Velocities(upper=9.0, name="v")]
    limits.append(motion.Velocities(lower=-9.0, name="w"))
    phase, groups = motion.Phase(1.0, points=6), [["t"], ["v", "w"]]
    arm = torsor.library.planar_chain(1)
    motion.MotionProblem(arm, phase, motion.Effort(), [*ends, *limits], relaxation_order=groups).save(
        tmp_path / "p.toml"
    )
    assert [list(each) for each in motion.load_problem(tmp_path / "p.toml").relaxation_order] == groups


def test_hostile_files_are_refused(tmp_path: Path) -> None:
    found().save(tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as file:
        good = {name: file[name] for name in file.files}
    path = tmp_path / "bad.npz"
    for changes, words in (
        ({"x": np.zeros(3)}, "x has shape"),
        ({"x": np.full(len(good["x"]), np.nan)}, "not finite"),
        ({"x": good["x"].astype(complex)}, "real numbers"),
        ({"multipliers": np.zeros((2, 2))}, "multipliers has shape"),
        ({"log": np.zeros((1, 9))}, "log has shape"),
        ({"log": np.float64(0.0)}, "not a result"),
        ({"torsor": 7}, "version is 7"),
        ({"status": "x" * 5000}, "too long"),
        ({"problem": np.frombuffer(b"torsor = 1\nrobot = '/etc/passwd'", dtype=np.uint8)}, "phases is missing"),
        ({"problem": np.frombuffer(b"\xff", dtype=np.uint8)}, "not valid TOML"),
        ({"x": np.array([{}], dtype=object)}, "allow_pickle"),
    ):
        np.savez(path, **(good | changes))
        with refused(words):
            motion.MotionResult.load(path)
    for name in ("x", "log", "status"):
        np.savez(path, **{key: value for key, value in good.items() if key != name})
        with refused(where="bad.npz", what=f"'{name}'"):
            motion.MotionResult.load(path)
    np.savez_compressed(path, **good)
    with refused(what="compressed"):
        motion.MotionResult.load(path)
    path.write_bytes(b"PK\x03\x04 and nothing more")
    with refused(where="bad.npz", what="not a result"):
        motion.MotionResult.load(path)
    with refused(value=".pickle", allowed=".npz"):
        found().save(tmp_path / "result.pickle")


def test_tables_and_plain_values_say_what_was_found(tmp_path: Path) -> None:
    r = via()
    report = r.report()
    for words in ("optimal", "motors", "half", "Velocities", "Linked", "Effort", f"{r.T:.8g}"):
        assert words in report
    plain = json.loads(json.dumps(r.to_dict(), allow_nan=False))
    assert plain["T"] == r.T and plain["iterations"] == r.iterations and plain["trajectory"]["t"][-1] == r.T
    assert np.allclose(plain["trajectory"]["tau"], r.tau) and plain["trajectory"]["coordinates"] == ["joint1", "joint2"]
    r.to_csv(tmp_path / "via.csv")
    table = torsor.Trajectory.load(tmp_path / "via.csv", robot=robot())
    assert (table.q == r.q).all() and (table.tau == r.tau).all()


def test_figures_shade_what_limits_forbid(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = via().plot(tmp_path / "via.png", what=("v", "tau", "tau_rate", "reactions"))
    v, tau, rate, reactions = figure.axes
    assert [len(axes.collections) for axes in (v, tau, rate, reactions)] == [2, 4, 0, 0]
    low, high = tau.get_ylim()
    assert low < -10 and high > 10 and (tmp_path / "via.png").stat().st_size > 10_000
    with refused(value="power"):
        via().plot(what="power")


def test_settings_that_cannot_be_are_refused() -> None:
    problem = fastest()
    for wrong, words in (
        ({"solver": "magic"}, "solver"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"iterations": 1.5}, "iterations"),
        ({"seconds": "long"}, "seconds"),
        ({"refine": -1.0}, "refine"),
        ({"start": np.zeros((5, 3))}, "a MotionResult, profiles (K, 2)"),
        ({"start": "line"}, "start is a str"),
        ({"start": np.full((5, 2), np.inf)}, "not finite"),
    ):
        with refused(words):
            problem.solve(**wrong)
    with refused(value="speed"):
        replace(problem, settings={"speed": 3}).solve()


@pytest.mark.parametrize("solver", sorted(motion.SOLVERS))
def test_every_solver_gives_the_same_motion(solver: str) -> None:
    r = fastest().solve(solver)
    assert r.solver == solver and r.is_solved and pytest.approx(found().T, rel=1e-4) == r.T


def test_a_limit_on_time_gives_the_best_motion_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torsor.motion.solve.GRACE_SECONDS", 600.0)  # however long compiling takes
    r = fastest().solve(seconds=1e-9)
    assert not r.is_solved and "time limit" in r.status and r.iterations < found().iterations


def test_a_limit_on_time_that_ends_while_compiling_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, pause = fastest(), threading.Event()
    monkeypatch.setattr("torsor.motion.solve.GRACE_SECONDS", 0.0)
    monkeypatch.setattr("torsor.motion.solve.check_start", lambda *_: pause.wait(60))  # nobody sets it
    for check in (True, False):
        with refused(what="0.1 s was reached during compilation, before the", error=motion.MotionError) as told:
            problem.solve(seconds=0.1, check=check)
        assert told.value.result is None and not told.value.conflict


def test_a_limit_on_time_while_a_further_step_is_compiled_keeps_the_motion(monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_time(_: object) -> None:
        raise OutOfTimeError

    monkeypatch.setattr("torsor.motion.solve.least_effort_problem", out_of_time)
    r = fastest().solve(tie_break=True)
    assert r.is_solved and r.status.startswith("optimal") and "time limit was reached while the next step" in r.status


def test_a_problem_has_settings_of_its_own() -> None:
    short = replace(fastest(), settings={"iterations": 2, "check": False}).solve()
    assert not short.is_solved and short.iterations == 2 and "iteration limit" in short.status


def test_ctrl_c_gives_the_best_motion_so_far(monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]) -> None:
    """A solver that is interrupted after its third iteration."""
    problem, good = fastest(), found()

    def stubborn(program: object, start: np.ndarray, settings: object) -> Outcome:
        number = 0
        try:
            for number in range(10):
                if number == 3:
                    ctrl_c()
                settings.watch(Iteration(number, 1.0 / (1 + number), 0.0, 0.1), start)
        except StoppedError:
            return replace(good.outcome, iterations=number, status="stopped", is_solved=False)
        raise AssertionError("nobody stopped it")

    monkeypatch.setitem(motion.SOLVERS, "stubborn", stubborn)
    before = signal.getsignal(signal.SIGINT)
    r = problem.solve("stubborn", progress=True)
    assert r.status == "stopped by Ctrl-C" and r.iterations == 3 and r.is_feasible
    assert signal.getsignal(signal.SIGINT) is before


def test_iterations_are_shown_while_they_come(capfd: pytest.CaptureFixture[str]) -> None:
    fastest().solve(progress=True)
    shown = capfd.readouterr().err
    assert "violation" in shown and "objective" in shown and "fastest" in shown


@dataclass(frozen=True, eq=False, kw_only=True)
class Logarithm(Constraint):
    """A row that is a number only where the first coordinate is above ``least``."""

    least: float = 0.0

    def rows(self, node: Node) -> Rows:
        return Rows(ca.log(node.q[0] - self.least), np.array([-np.inf]), np.array([5.0]), ("log",))


def test_a_start_without_numbers_names_the_row() -> None:
    problem = replace(fastest(), constraints=[*ENDS, Logarithm(least=0.7, name="odd")])
    with refused(where="fastest: odd: log", what="the row is not a number at the start (s = 0 of phase 0)"):
        problem.solve()
    kept = replace(fastest(), constraints=[*ENDS, Logarithm(least=-1.0), motion.Torques(upper=10.0)]).solve()
    assert pytest.approx(found().T, rel=1e-4) == kept.T


def test_a_motion_without_freedom_is_known_but_not_searched_for() -> None:
    problem = motion.MotionProblem(robot(), motion.Phase(2.0, points=4), motion.Time(), ENDS)
    at = Course(problem, problem.guess()).at([0.0, 1.0, 2.0])
    assert np.allclose(at.q, [[0.0, -2.0], [0.5, -1.5], [1.0, -1.0]], rtol=0, atol=1e-15)
    with refused(what="no variables: all control points are known"):
        problem.solve()


def test_a_start_outside_the_bounds_of_durations_is_brought_within() -> None:
    x = fastest().guess()
    x[-1] = 1e-300
    assert pytest.approx(found().T, rel=1e-4) == fastest().solve(start=x).T
