"""Running: one foot or none on the ground, flights that are free falls, tendons, and rejected input."""

import casadi as ca
import numpy as np
import pytest

import torsor
from references.complex_steps import slopes_along
from refusals import refused
from torsor.cli.main import main
from torsor.human import Foot, Person, Stride, running
from torsor.human.contact.contact_forces import ONE_FOOT, contact_forces
from torsor.human.contact.schedule import Run, RunningStep
from torsor.human.gait.stride import free_fall
from torsor.human.terms.objectives import LINEAR_FORCE, springs, stretch_slope
from torsor.human.terms.problem import Samples, sampled
from torsor.motion.transcription.splines import Spline

# Between the nodes, the centre of pressure leaves the sole at touch-down and toe-off (docs/people/running.md).
pytestmark = pytest.mark.filterwarnings("ignore:.*between the nodes")

POINTS = 13


@pytest.fixture(scope="module")
def problem():
    return running(3.0, tendons=True)


@pytest.fixture(scope="module")
def places(problem):
    """The places of all symbols of a node, after all terms have asked for theirs."""
    node = problem.node
    for title in ("flight", "balance", "tendons"):
        _term(problem, title).rows(node)
    _term(problem, "energy").integrand(node)
    return {str(each): k for k, each in enumerate(ca.vertsplit(node.symbols))}


def _term(problem, title):
    return next(each for each in problem.terms if each.title == title)


def _values(problem, places, s):
    """Return random values of a node's symbols, with the contact of a moment s."""
    values = 0.2 * np.random.default_rng(0).normal(size=len(places))
    values[places["T"]] = 0.3
    given = _term(problem, "balance").data(np.array([s]))["shared ground"][0]
    for symbol, value in zip(ca.vertsplit(problem.node.data("shared ground", ONE_FOOT.size)), given, strict=True):
        values[places[str(symbol)]] = value
    for k, value in enumerate(springs(Person(1.741, 73.0, "male")).ravel()):
        values[places[f"tendons_{k}"]] = value
    return values


def _evaluated(problem, outputs, values):
    made = ca.Function("outputs", [problem.node.symbols], [ca.densify(each) for each in outputs])
    return [each.full().ravel() for each in made.call([values])]


def test_in_flight_the_ground_acts_on_no_joint(problem, places):
    contact, node = contact_forces(problem.node), problem.node
    outputs = [contact.torques, node.tau[6:], contact.ground_power("right"), contact.feet["right"].f]
    torques, tau, power, force = _evaluated(problem, outputs, _values(problem, places, 0.8))
    np.testing.assert_array_equal(torques, tau)
    assert not power.any() and not force.any()


def test_in_stance_the_whole_force_acts_on_the_right_leg(problem, places):
    contact, node = contact_forces(problem.node), problem.node
    outputs = [contact.torques, node.tau, contact.feet["right"].f, contact.feet["left"].f]
    torques, tau, right, left = _evaluated(problem, outputs, _values(problem, places, 0.3))
    np.testing.assert_array_equal(right, tau[:3])
    assert not left.any()
    changed = {node.robot.coordinate_names[6 + int(k)] for k in np.flatnonzero(torques != tau[6:])}
    assert changed and all(name.startswith("right_") for name in changed)


def test_the_pressure_is_bounded_by_the_sole_about_the_heel(problem, places):
    contact, foot = contact_forces(problem.node), Foot.of(torsor.library.human())
    heel = -problem.node.shared["step width"] / 2
    outputs = [contact.force, contact.moment, heel, *contact.rows.values()]
    force, moment, (heel,), *rows = _evaluated(problem, outputs, _values(problem, places, 0.3))
    x, z = moment[2] / force[1] - heel, -moment[0] / force[1]
    wanted = np.array([z, 0.7059 * foot.length - z, x + foot.half, foot.half - x]) * force[1]  # the foot is flat
    np.testing.assert_allclose(np.concatenate(rows), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("s", "presses"), [(0.0, False), (0.3, True), (0.68, False), (0.9, False)])
def test_only_a_foot_that_presses_has_a_friction_cone_and_a_sole(problem, places, s, presses):
    rows = _term(problem, "balance").rows(problem.node)
    (found,) = _evaluated(problem, [rows.expression], _values(problem, places, s))
    pressing = found[[k for k, label in enumerate(rows.labels) if label != "rate of time"]]
    assert (pressing != 1.0).all() if presses else (pressing == 1.0).all()


def test_derivatives_of_flight_balance_and_tendons_agree_with_complex_steps(problem, places):
    node = problem.node
    parts = [_term(problem, title).rows(node).expression for title in ("flight", "balance", "tendons")]
    column = ca.vertcat(*parts, _term(problem, "energy").integrand(node))
    values = _values(problem, places, 0.3)
    made = ca.Function("rows", [node.symbols], [column])
    jacobian = ca.Function("jacobian", [node.symbols], [ca.jacobian(column, node.symbols)])
    ways = np.random.default_rng(2).normal(size=(len(places), 3))
    (wanted,) = slopes_along(made, [values], [ways])
    np.testing.assert_allclose(jacobian(values).full() @ ways, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())


def test_the_pelvis_has_as_many_accelerations_in_flight_as_there_are_equations():
    run = Run(RunningStep(length=1.0, width=0.1, timing="given"))
    spline, flight, joints = run.pelvis(POINTS), run.flight(POINTS), Spline(3, run.knots(POINTS))
    bent = spline.matrix(flight, 2)
    assert np.linalg.matrix_rank(bent) == len(flight)  # any accelerations there are possible
    inside = (spline.inner > run.step.toe_off) & (spline.inner < 1.0)
    assert inside.sum() == len(flight) - 2  # between them, accelerations are lines
    assert set(joints.inner.round(12)) <= set(spline.inner.round(12))
    assert set(flight.round(12)) <= set(run.nodes(POINTS).round(12))


def test_a_tendon_stretches_by_the_root_of_its_force_and_gives_all_work_back():
    p = np.linspace(0.2, 1.0, 2001)
    slope = np.array([float(stretch_slope(each)) for each in p[::400]])
    stretch = p * (p**2 + LINEAR_FORCE**2) ** -0.25
    np.testing.assert_allclose(stretch, np.sqrt(p), rtol=0.003)
    np.testing.assert_allclose(slope, np.gradient(stretch, p)[::400], rtol=2e-3)
    t = np.linspace(0.0, 2 * np.pi, 4001)
    pulled = 0.5 - 0.4 * np.cos(t)
    rate = (pulled**2 / 2 + LINEAR_FORCE**2) * (pulled**2 + LINEAR_FORCE**2) ** -1.25 * np.gradient(pulled, t)
    power = pulled * rate
    assert abs(np.trapezoid(power, t)) < 1e-3 * np.trapezoid(np.maximum(power, 0.0), t)


def test_tendons_have_the_torques_and_angles_of_their_muscles():
    (ankle, bend), (knee, _) = springs(Person(1.8, 80.0, "male"))
    assert abs(ankle - 0.05 * (4000 + 1500)) < 1e-9 and abs(knee - 0.06 * 6000) < 1e-9
    assert abs(bend - 0.04 * (4000 * 0.26 + 1500 * 0.40) / ankle) < 1e-12


def test_given_and_free_steps():
    given = running(3.0, length=0.9, width=0.08, timing="given")
    assert given.phases.bounds == (0.3, 0.3) and given.phases.clock == 0
    assert given.held["step width"] == 0.08
    free = running(2.5, length=(0.8, 1.0))
    np.testing.assert_allclose(free.phases.bounds, (0.32, 0.4))
    assert {"step width", "clock cos 1"} <= set(free.shared)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: running(1.5), "speed"),
        (lambda: running(9.0), "speed"),
        (lambda: running("fast"), "speed"),
        (lambda: running(load=torsor.human.Backpack(10.0)), "load"),
        (lambda: running(slope=0.1), "slope"),
        (lambda: running(points=7), "points"),
        (lambda: running(objective={"balance": 1.0}), "objective"),
        (lambda: running(length="long"), "length"),
        (lambda: running(timing="late"), "timing"),
        (lambda: running(tendons=1), "tendons"),
        (lambda: running(strength={"right_knee_flexion": 0.5}), "strength"),
        (lambda: RunningStep(toe_off=0.3), "increasing numbers"),
    ],
)
def test_runs_that_cannot_be_are_refused(make, words):
    with refused(words):
        make()


def test_options_of_a_walk_that_a_run_does_not_have_are_refused(capsys):
    assert main(["predict", "run", "--slope", "5"]) == 1
    assert "--slope is an option of walk, not of run" in capsys.readouterr().err


@pytest.mark.slow
def test_exact_derivatives_of_a_run_agree_with_differences(problem):
    program, rng = problem.program, np.random.default_rng(3)
    x = np.clip(problem.guess() + 0.02 * rng.normal(size=program.n), program.lower, program.upper)
    way, h = rng.normal(size=program.n), 1e-6
    ahead, behind = (program.value(x + sign * h * way) for sign in (1, -1))
    gradient, entries = program.jacobian(x)
    rows, columns = program.structure
    found = np.bincount(rows, entries * way[columns], minlength=program.m)
    wanted = (ahead[1] - behind[1]) / (2 * h)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6 * np.abs(wanted).max())
    assert abs(gradient @ way - (ahead[0] - behind[0]) / (2 * h)) < 1e-6 * abs(gradient @ way)
    y = rng.normal(size=program.m)
    slopes = []
    for sign in (1, -1):
        gradient, entries = program.jacobian(x + sign * h * way)
        slopes.append(gradient + np.bincount(columns, entries * y[rows], minlength=program.n))
    curved, wanted = program.hessian(x, y, 1.0) @ way, (slopes[0] - slopes[1]) / (2 * h)
    np.testing.assert_allclose(curved, wanted, atol=1e-6 * np.abs(wanted).max())


@pytest.fixture(scope="module")
def run():
    # Flights of an unfinished search are longer and less smooth, so that their residuals between the nodes are larger.
    run = running(3.0).solve(check=False, tolerance=1e-3)
    assert run.status.startswith("optimal")
    return run


@pytest.mark.slow
def test_a_run_obeys_the_laws_of_mechanics(run, tmp_path):
    stride = Stride(run)
    assert run.max_violation < 1e-3
    fall = free_fall(stride)
    assert fall.force < 0.05 and fall.moment < 0.05 and fall.away < 1e-4
    flight = stride.s[stride.s < 0.5] > stride.step.duty_factor + 0.002
    assert flight.any() and not stride.forces[: len(flight)][flight].any()
    mean = stride.forces.sum(axis=1)[:-1].mean(axis=0)
    assert abs(mean[1] - 1) < 2e-3 and abs(mean[2]) < 2e-3 and abs(mean[0]) < 1e-9
    assert abs(stride.energy.residual) < 0.02 * stride.energy.positive
    assert abs(stride.energy.ground) < 0.03 * stride.energy.positive
    length = Foot.of(stride.body).length
    # Times the force, the pressure is within the sole at nodes; between them by 1 mm times the weight.
    first_step = Samples(*(values[:201] for values in stride.samples))
    for at, off in ((sampled(run, run.problem.phases.nodes), 1e-4), (first_step, 1e-3)):
        up, turn = at.forces[:, 0, 1], -at.moments[:, 0, 0]
        assert min(turn.min(), (length * up - turn).min()) > -off * stride.weight
    friction = np.linalg.norm(stride.force[:, [0, 2]], axis=1) - 0.8 * stride.force[:, 1]
    assert friction.max() < 0.02
    stride.save(tmp_path / "stride.npz")
    assert Stride.load(tmp_path / "stride.npz").step == stride.step
    assert "residual force in flight" in stride.report() and not stride.likeness()


@pytest.mark.slow
def test_a_run_has_the_duty_factor_of_people_and_a_flight(run):
    stride = Stride(run)
    assert 0.25 < stride.step.duty_factor < 0.40
    assert 1.8 < stride.force[:, 1].max() < 2.9
    assert 0.5 < stride.step.length < 1.3


@pytest.mark.slow
def test_tendons_save_energy(run):
    sprung = running(3.0, tendons=True).solve(start=run, check=False, tolerance=1e-3, iterations=250)
    assert sprung.max_violation < 1e-2, sprung.status
    before, after = (next(part.value for part in each.parts if part.title == "energy") for each in (run, sprung))
    assert after < 0.9 * before
