"""Online scaling: torques and torque rates are within their bounds, and little time is lost."""

import runpy
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.control import OnlineScaling
from torsor.control.scaling.online import FromRest, Spline, ToRest
from torsor.control.scaling.path_dynamics import coefficients, interpolation, loads, refinement
from torsor.control.scaling.window import solution, solve
from torsor.motion.problems import path_time


class Waves:
    """A random joint path with all derivatives: q = q0 + s slope + amplitude sin(s frequency + phase)."""

    def __init__(self, n: int, seed: int):
        random = np.random.default_rng(seed)
        self.start, self.slope = random.uniform(-1, 1, n), random.uniform(-1, 1, n)
        self.size, self.often, self.phase = random.uniform(0, 0.5, n), random.uniform(1, 5, n), random.uniform(0, 6, n)

    def __call__(self, s: float) -> list[np.ndarray]:
        angle = np.multiply.outer(s, self.often) + self.phase
        waves = [np.sin(angle), np.cos(angle), -np.sin(angle), -np.cos(angle)]
        found = [self.size * self.often**k * wave for k, wave in enumerate(waves)]
        found[0], found[1] = found[0] + self.start + np.multiply.outer(s, self.slope), found[1] + self.slope
        return found


def follow(scaling, path, length, most=20000):
    """Return the timing (steps, 3) and the commands (steps, 3, nv) of a path that is fed as early as there is room."""
    count = round(length / scaling.spacing) + 1
    timing, commands = [], []
    while not scaling.finished and len(timing) < most:
        while scaling.room:
            if scaling.fed < count:
                scaling.feed(*path(scaling.fed * scaling.spacing))
            else:
                scaling.close()
        timing.append(scaling.step())
        commands.append(scaling.command())
    assert scaling.finished
    return np.array(timing), np.array(commands)


def use_of_bounds(scaling, path, timing):
    """Return the largest torque, torque rate and velocity relative to their bounds, by inverse dynamics on the path."""
    s, rate, acceleration = timing.T
    q, d1, d2, _ = path(s)
    v = d1 * rate[:, None]
    tau = scaling.robot.inverse_dynamics(q, v, d2 * (rate**2)[:, None] + d1 * acceleration[:, None])
    # The mean rate over a period; the last period ends before the step does.
    rates = np.abs(np.diff(tau, axis=0))[:-1] / scaling.period
    return [(each / bound).max() for each, bound in ((np.abs(tau), scaling.torque), (rates, scaling.torque_rate))] + [
        (np.abs(v) / scaling.velocity).max()
    ]


def two_link(**more):
    options = {"torque": 12.0, "torque_rate": 120.0, "velocity": 6.0, "speed": 10.0, "preview": 48} | more
    return OnlineScaling(torsor.library.two_link(), options.pop("spacing", 0.02), 1e-3, **options)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_at_every_step_of_random_paths(seed):
    path, scaling = Waves(2, seed), two_link()
    timing, _ = follow(scaling, path, 2.0)
    use = use_of_bounds(scaling, path, timing)
    assert max(use) <= 1.0
    assert max(use) > 0.95  # some bound is reached: the motion is not slower than necessary
    assert (np.diff(timing[:, 0]) >= 0).all()


@pytest.mark.parametrize("name", ["planar_chain", "six_axis_arm"])
@pytest.mark.slow
def test_bounds_hold_for_other_robots_with_friction_between_steps_too(name):
    robot = getattr(torsor.library, name)(*([4] if name == "planar_chain" else [])).without_friction()
    for joint in robot.joint_names:
        robot = robot.with_friction(joint, viscous=0.5)
    path = Waves(robot.nv, 7)
    bound = 2 * np.abs([robot.gravity_force(path(s)[0]) for s in np.linspace(0, 1, 50)]).max(axis=0) + 1
    # A quarter of a millisecond is far below the time between two samples.
    scaling = OnlineScaling(robot, 0.01, 2.5e-4, torque=bound, torque_rate=10 * bound, velocity=5.0, speed=10.0)
    timing, _ = follow(scaling, path, 1.0)
    use = use_of_bounds(scaling, path, timing)
    assert 0.9 < max(use) <= 1.0


def wished(s):
    """A motion of two joints from rest to rest in 2 s: s is the time."""
    t = s / 2.0
    way = [t**3 * (10 - 15 * t + 6 * t**2), 30 * t**2 * (1 - t) ** 2 / 2, 60 * t * (1 - t) * (1 - 2 * t) / 4]
    way.append(60 * (1 - 6 * t + 6 * t**2) / 8)
    return [
        np.multiply.outer(each, [1.0, 1.5]) + (np.array([0.0, -2.0]) if k == 0 else 0) for k, each in enumerate(way)
    ]


def test_a_wished_timing_that_is_within_the_bounds_passes_unchanged():
    scaling = two_link(speed=1.0)
    timing, commands = follow(scaling, wished, 2.0)
    time = 1e-3 * np.arange(1, len(timing) + 1)
    inside = time < 2.0
    assert np.abs(timing[inside, 0] - time[inside]).max() < 1e-12
    assert (timing[inside[:-1].nonzero()[0], 1] == 1.0).all()
    assert np.abs(commands[inside, 0] - wished(time[inside])[0]).max() < 1e-9


def test_a_wished_timing_beyond_the_bounds_is_followed_later_and_never_earlier():
    scaling = two_link(speed=1.0, torque=1.0, torque_rate=2.0)
    timing, _ = follow(scaling, wished, 2.0)
    time = 1e-3 * np.arange(1, len(timing) + 1)
    assert (timing[:, 0] <= time + 1e-12).all()
    assert timing[:, 1].max() <= 1.0 + 1e-12
    assert max(use_of_bounds(scaling, wished, timing)) <= 1.0
    assert len(timing) > 2010


def test_the_commands_are_the_motion_along_the_path():
    path, scaling = Waves(2, 3), two_link()
    timing, commands = follow(scaling, path, 1.0)
    s, rate, acceleration = timing.T
    q, d1, d2, _ = path(s)
    expected = q, d1 * rate[:, None], d2 * (rate**2)[:, None] + d1 * acceleration[:, None]
    for k in range(3):
        assert np.abs(commands[:, k] - expected[k]).max() < 1e-8


@pytest.mark.slow
def test_one_joint_takes_the_time_of_the_closed_form():
    robot = torsor.library.planar_chain(1).with_gravity([0.0, 0.0, 0.0])
    inertia = float(robot.mass_matrix([0.0])[0, 0])
    scaling = OnlineScaling(
        robot, 0.01, 1e-3, torque=10 * inertia, torque_rate=100 * inertia, speed=50.0, preview=150, margin=1e-3
    )
    timing, _ = follow(scaling, lambda s: [np.array([s]), np.ones(1), np.zeros(1), np.zeros(1)], 1.5)
    # Acceleration 10 and jerk 100: ramps of 0.1 s up and down again, twice, and constant acceleration between them.
    least = 0.1 + np.sqrt(0.1**2 + 4 * 1.5 / 10)
    assert least < 1e-3 * len(timing) < 1.02 * least


@pytest.mark.slow
@pytest.mark.parametrize("turns", [0.0, 1.0])
def test_the_ur5_loses_less_than_two_percent_against_the_offline_optimum(turns):
    x = np.linspace(0, 1, 9)
    start, way = np.array([0, -1.5, 1.0, -1.0, -1.5, 0.0]), np.array([1.5, 1.0, -0.5, -0.5, 0.5, 1.0])
    waves = turns * np.sin(np.multiply.outer(x, [3, 4, 5, 3, 4, 5])) * 0.2
    robot = torsor.library.ur5()
    rates = 10 * robot.effort_limit
    problem = path_time(start + np.multiply.outer(x, way) + waves, robot=robot, points=40, torque_rates=rates)
    best = problem.solve().T

    def path(s):
        return [problem.path.spline.matrix(s, order) @ problem.path.points for order in range(4)]

    table = path(np.linspace(0, 1, 129))
    scaling = OnlineScaling(robot, 1 / 128, 1e-3, torque_rate=rates, speed=50.0)
    timing, _ = follow(scaling, lambda s: [each[round(128 * s)] for each in table], 1.0)
    assert max(use_of_bounds(scaling, path, timing)) <= 1.0
    assert 1e-3 * len(timing) < 1.02 * best


def test_a_short_preview_makes_the_motion_slower_and_breaks_no_bound():
    path, times = Waves(2, 1), []
    for preview in (16, 48):
        scaling = two_link(preview=preview)
        timing, _ = follow(scaling, path, 2.0)
        assert max(use_of_bounds(scaling, path, timing)) <= 1.0
        times.append(len(timing))
    assert times[0] > times[1]


def test_without_samples_the_robot_stops_within_the_known_path_and_goes_on_with_the_next_ones():
    path, scaling = Waves(2, 2), two_link()
    for k in range(30):
        scaling.feed(*path(k * scaling.spacing))
    timing = [scaling.step() for _ in range(2000)]
    assert scaling.waits and not scaling.finished
    assert timing[-1].rate == 0.0 and timing[-1].s <= 29 * scaling.spacing
    rest, _ = follow(scaling, path, 1.0)
    timing = np.array([*timing, *rest])
    assert timing[-1, 0] == pytest.approx(1.0)
    assert max(use_of_bounds(scaling, path, timing)) <= 1.0


def test_samples_that_come_one_by_one_late_are_followed_within_the_bounds_also_in_a_pause():
    waves, scaling = Waves(2, 1), two_link(preview=16)

    def path(s):  # it stands still from sample 8 to sample 24; all derivatives are smooth
        before, after = np.clip(1 - s / 0.16, 0, None), np.clip(s / 0.48 - 1, 0, None)
        way = 0.1 * (after**5 - before**5)
        slopes = [
            0.1 * (scale * after**power / 0.48**k - (-1) ** k * scale * before**power / 0.16**k)
            for k, (scale, power) in enumerate(((5, 4), (20, 3), (60, 2)), 1)
        ]
        q, d1, d2, d3 = waves(way)
        a, b, c = (np.asarray(each)[..., None] for each in slopes)
        return [q, d1 * a, d2 * a**2 + d1 * b, d3 * a**3 + 3 * d2 * a * b + d1 * c]

    timing = []
    while not scaling.finished and len(timing) < 10000:
        if scaling.fed < 33 and len(timing) >= 200 * (scaling.fed - 9):  # one sample in 0.2 s, as the robot waits
            scaling.feed(*path(scaling.fed * scaling.spacing))
            if scaling.fed == 33:
                scaling.close()
        elif scaling.fed > 8:
            timing.append(scaling.step())
    assert scaling.finished
    assert max(use_of_bounds(scaling, path, np.array(timing))) <= 1.0


class Pausing:
    """A random path that does not move at random samples, with all derivatives."""

    BLEND = np.polynomial.Polynomial([0, 0, 0, 0, 35, -84, 70, -20])

    def __init__(self, seed, spacing):
        random, self.waves, self.parts, s, way = np.random.default_rng(1000 + seed), Waves(2, seed), [], 0.0, 0.0
        for _ in range(random.integers(1, 4)):
            length = spacing * random.integers(10, 40)
            self.parts.append((s, length, way))
            s, way = s + length + spacing * random.integers(0, 16), way + length
        self.length = s

    def __call__(self, s):
        slopes = [np.zeros_like(s, dtype=float) for _ in range(4)]
        for start, length, _ in self.parts:
            t = np.clip((s - start) / length, 0, 1)
            for k in range(4):
                slopes[k] = slopes[k] + length ** (1 - k) * self.BLEND.deriv(k)(t)
        q, d1, d2, d3 = self.waves(slopes[0])
        a, b, c = (np.asarray(each)[..., None] for each in slopes[1:])
        return [q, d1 * a, d2 * a**2 + d1 * b, d3 * a**3 + 3 * d2 * a * b + d1 * c]


@pytest.mark.parametrize("seed", [1, 4, *(pytest.param(k, marks=pytest.mark.slow) for k in range(100, 160))])
def test_bounds_hold_between_coarse_samples_with_pauses_and_late_samples(seed):
    random = np.random.default_rng(seed)
    options = {"speed": random.choice([1.0, 3.0, 10.0]), "preview": int(random.choice([16, 24, 48]))}
    path, scaling, timing, idle = Pausing(seed, 0.02), two_link(**options), [], 0
    count = round(path.length / scaling.spacing) + 1
    while not scaling.finished and len(timing) < 20000:
        if scaling.fed < 9 or idle <= 0:
            most = scaling.room if random.random() < 0.5 else random.integers(1, 8)
            for _ in range(min(scaling.room, most)):
                if scaling.fed < count:
                    scaling.feed(*path(scaling.fed * scaling.spacing))
                elif not scaling.closed:
                    scaling.close()
            idle = random.choice([0, 5, 50, 300])
        idle -= 1
        if scaling.fed >= 9 or scaling.closed:
            timing.append(scaling.step())
    assert scaling.finished
    assert max(use_of_bounds(scaling, path, np.array(timing))) <= 1.0


def test_a_path_that_is_a_little_longer_than_the_preview_is_followed_to_its_end():
    for length in (18, 19):  # fewer samples would be left than a plan needs
        scaling = two_link(preview=16)
        follow(scaling, Waves(2, 1), length * scaling.spacing)


def test_the_coefficients_between_samples_are_those_of_the_commanded_path():
    robot, path, h = torsor.library.two_link(), Waves(2, 5), 0.1
    ends, fixed = np.vstack([*path(0.3), *path(0.3 + h)]), [h, 10.0, 4.0, 3.0, 5.0]
    curve = interpolation(2)
    found, step = refinement(robot)(ends, 0.7, fixed), 1e-4
    parts = 0.7 - step, 0.7, 0.7 + step
    at = [np.array(curve(ends[:4], ends[4:], part, h, 1.0, 0.0)).ravel() for part in parts]
    q, d1, d2 = at[1].reshape(3, 2)
    d3 = (at[2] - at[0])[4:] / (2 * step * h)
    expected = coefficients(robot)(q, d1, d2, d3, fixed[1:3], fixed[3:])
    assert np.abs(np.array(found - expected)).max() < 1e-6


def test_a_bound_that_cannot_hold_between_two_samples_is_an_error():
    rod = torsor.DHLink(a=1.0, mass=1.0, com=(-0.5, 0, 0))
    pendulum = torsor.from_dh([rod], gravity=(0, -9.81, 0))
    scaling = OnlineScaling(pendulum, 1.0, 1e-2, torque=2.0, torque_rate=100.0, preview=16)
    for k in range(10):  # upright, then hanging, ...: at the samples there is no torque
        scaling.feed([np.pi * (k + 0.5)], [np.pi], [0.0], [0.0])
    scaling.close()
    with refused(what="times a bound"):
        scaling.step()


@pytest.mark.parametrize("friction", [0.0, 0.4])
def test_the_coefficients_give_torques_and_torque_rates(friction):
    robot = torsor.library.two_link().with_friction("joint1", viscous=friction)
    q, d1, d2, d3 = Waves(2, 5)(0.3)
    x, u, w = 1.7, -0.6, 2.3
    rate = np.sqrt(x)
    jerk = d3 * rate**3 + 3 * d2 * rate * u + d1 * w * rate
    tau, tau_rate = robot.force_rate(q, d1 * rate, d2 * x + d1 * u, jerk)
    bound, ratio = np.array([10.0, 4.0]), np.array([0.1, 0.2])
    data = coefficients(robot)(q, d1, d2, d3, bound, np.array([3.0, 4.0]))
    *parts, (fastest, hold) = ca.vertsplit(data, 2)[:-1], ca.vertsplit(data[-2:])
    parts = [ca.SX(each) for each in parts[0]]
    torque, change, *_ = loads(parts, ca.SX(ca.DM(ratio)), ca.SX(w), ca.SX(u), ca.SX(x))
    assert np.abs(np.array(ca.DM(torque)).ravel() - tau / bound).max() < 1e-13
    assert np.abs(np.array(ca.DM(change)).ravel() - tau_rate / bound * ratio).max() < 1e-13
    assert float(fastest) == pytest.approx(((np.array([3.0, 4.0]) / d1) ** 2).min())
    assert float(hold) == pytest.approx(np.abs(robot.gravity_force(q) / bound).max())


def test_derivatives_of_loads_agree_with_those_of_casadi():
    parts, ratio = [ca.SX(ca.DM(each)) for each in np.random.default_rng(1).normal(size=(8, 3))], ca.SX(0.3)
    state = [ca.SX.sym(name) for name in ("w", "u", "x")]
    torque, rate, by_torque, by_rate = loads(parts, ratio, *state)
    for value, slopes in ((torque, by_torque), (rate, by_rate)):
        error = ca.jacobian(value, ca.vertcat(*state)) - ca.horzcat(*slopes)
        assert np.abs(np.array(ca.Function("error", state, [error])(0.7, -0.4, 1.9))).max() < 1e-14


def test_the_system_of_a_window_is_solved():
    random, count = np.random.default_rng(3), 7
    systems, matrix, right = np.zeros((count, 10)), np.zeros((count + 2, count + 2)), np.zeros(count + 2)
    for k in range(count):
        J = random.normal(size=(5, 3))
        systems[k, :6], systems[k, 6:9] = (J.T @ J)[np.triu_indices(3)], random.normal(size=3)
        matrix[k : k + 3, k : k + 3] += J.T @ J
        right[k : k + 3] += systems[k, 6:9]
    for found in (np.array(solution(count)(systems)).ravel(), solve(systems)):
        assert np.abs(found - np.linalg.solve(matrix, right)).max() < 1e-12


@pytest.mark.parametrize("w", [-30.0, -1e-8, 0.0, 1e-8, 2.0, 500.0])
def test_an_interval_is_passed_with_the_acceleration_as_a_linear_function_of_the_way(w):
    whole, parts = (Spline(0.1, 1.2, -0.5, w, 1e-3) for _ in range(2))
    whole.advance(0.02)
    for _ in range(20):
        parts.advance(1e-3)
    for interval in (whole, parts):
        assert interval.acceleration == pytest.approx(-0.5 + w * interval.way, abs=1e-12)
        assert interval.rate**2 == pytest.approx(1.2 - interval.way + w * interval.way**2, abs=1e-12)
    assert whole.way == pytest.approx(parts.way, abs=1e-14)
    left = whole.advance(0.2)
    assert 0 < left < 0.2
    again = Spline(0.1, 1.2, -0.5, w, 1e-3)
    again.advance(0.22 - left - 1e-9)
    assert again.way == pytest.approx(0.1, abs=1e-8)


def test_intervals_from_and_to_rest_mirror_each_other():
    up, down = FromRest(0.1, 0.8), ToRest(0.1, 0.8)
    length = 3 * 0.1 / np.sqrt(0.8)
    up.advance(0.3 * length)
    down.advance(0.7 * length)
    assert up.way == pytest.approx(0.1 - down.way) and up.rate == pytest.approx(down.rate)
    assert up.acceleration == pytest.approx(-down.acceleration)
    assert up.advance(length) == pytest.approx(0.3 * length) == down.advance(0.6 * length)


@pytest.mark.slow
def test_the_simulated_arm_of_the_example_stays_within_the_bounds():
    root = Path(__file__).parents[2]
    example = runpy.run_path(str(root / "examples" / "online_scaling.py"))
    found = example["track"](torsor.library.ur5())
    torque, rate = example["use"](found.torque, found.rate, found.motion.tau[:-1])
    assert torque.max() <= 1.0 and 0.9 < rate.max() <= 1.0
    assert np.abs(found.motion.q[: len(found.commands)] - found.commands).max() < 1e-3
    assert found.timing[-1, 0] == pytest.approx(example["DESIRED"])


# Input


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"spacing": 0.0}, "spacing"),
        ({"spacing": -0.1}, "spacing"),
        ({"torque_rate": -1.0}, "torque_rate"),
        ({"torque": [1.0, 2.0, 3.0]}, "a number, or 2 of them"),
        ({"speed": np.inf}, "speed"),
        ({"margin": 0.7}, "margin"),
        ({"pieces": 0}, "pieces"),
        ({"spacing": np.nan}, "spacing"),
        ({"preview": 3}, "preview"),
    ],
)
def test_options_are_checked(option, message):
    with refused(message):
        two_link(**option)


def test_a_period_of_zero_is_an_error():
    with refused(argument="period", allowed="a finite number, above 0"):
        OnlineScaling(torsor.library.two_link(), 0.1, 0)


def test_a_path_on_which_the_robot_cannot_stand_still_is_an_error():
    hanging = torsor.library.two_link().with_gravity([0.0, -9.81, 0.0])
    scaling = OnlineScaling(hanging, 0.1, 1e-3, torque=3.0)
    scaling.feed([-np.pi / 2, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    with refused(what="'joint1'", allowed="less than 2.97"):
        scaling.feed([0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0])


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (([0.0, np.nan], [1, 0], [0, 0], [0, 0]), "q"),
        (([0.0, 0.0], [1, 0], [0, np.inf], [0, 0]), "d2"),
        (([0.0, 0.0], [1, 0, 2], [0, 0], [0, 0]), "d1"),
        (([[0.0, 0.0]] * 2, [1, 0], [0, 0], [0, 0]), "q"),
        ((["a", 0.0], [1, 0], [0, 0], [0, 0]), "q"),
    ],
)
def test_samples_are_checked(sample, message):
    with refused(message):
        two_link().feed(*sample)


def test_samples_come_neither_after_the_end_nor_beyond_the_room():
    sample, scaling = ([-1.5, 0.0], [0.1, 0.0], [0.0, 0.0], [0.0, 0.0]), two_link(preview=16)
    with refused(allowed="5 or more"):
        scaling.close()
    while scaling.room:
        scaling.feed(*sample)
    with refused(fix="call feed only while"):
        scaling.feed(*sample)
    scaling.close()
    with refused(what="the path is closed"):
        scaling.feed(*sample)
    with refused(fix="feed at least 9, or close the path"):
        two_link(preview=16).step()


def test_robots_whose_torques_jump_are_refused():
    with refused(what="'joint2' has friction that is not viscous"):
        OnlineScaling(torsor.library.two_link().with_friction("joint2", coulomb=1.0), 0.1, 1e-3)
    with refused(what="OnlineScaling does not support the elastic joints"):
        OnlineScaling(torsor.library.elastic_arm(), 0.1, 1e-3)
    with refused(what="OnlineScaling does not support robots with loops"):
        OnlineScaling(torsor.library.five_bar(), 0.1, 1e-3)
