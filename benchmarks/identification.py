"""Measure identification: coverage, bias, masses, time from a log, floating bases, people, and a TX40.

    python benchmarks/identification.py [--repeats 200] [--tx40 FOLDER] [--walk FOLDER]

The folder of ``--tx40`` contains the recording of a TX40 published by figaroh-examples: tx40.urdf, pos_read_data.csv
and curr_data.csv. The folder of ``--walk`` contains the recording of a walking man from OpenSim Moco's
example3DWalking: markers_walk.trc and grf_walk.mot.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import torsor
from torsor.human.measured import identify_segments, marker_paths, marker_set, measured_gait
from torsor.human.recordings import GroundForces, Markers, load
from torsor.human.recordings.axes import HUMAN
from torsor.identification import (
    LogMap,
    Measurements,
    differentiate,
    excite,
    identify_masses,
    output_error,
    write_identification_report,
)
from torsor.identification.closed_robot import ClosedRobot, closed_robot

CHAIN = torsor.library.planar_chain(2).with_friction("joint1", 0.5, 0.8).with_friction("joint2", 0.3, 0.4)
T = np.arange(8000) * 1e-3
LIMBS = [f"right_{name}" for name in ("thigh", "shank", "foot", "upper_arm", "forearm")]
CASES = {"torque noise": (0.0, 10.0, None), "2e-5 rad": (2e-5, 30.0, 20.0), "1e-4 rad": (1e-4, 10.0, 20.0)}


def swing() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, v, a of a motion with three harmonics in both joints."""
    w, phase = 2 * np.pi * np.array([0.25, 0.625, 1.0]), np.random.default_rng(3).uniform(0, 6, size=(3, 2))
    size, angle = np.array([0.8, 0.5, 0.3])[:, None], w[:, None] * T[:, None, None] + phase
    q, v = (size * np.sin(angle)).sum(axis=1), (w[:, None] * size * np.cos(angle)).sum(axis=1)
    return q, v, -((w**2)[:, None] * size * np.sin(angle)).sum(axis=1)


def coverage(repeats: int) -> None:
    """Print how often 95 % intervals contain the true values, with estimated noise and with assumed white noise."""
    motion = swing()
    tau, true = CHAIN.inverse_dynamics(*motion), CHAIN.inertial.base().values
    for case, (encoder, cutoff, bandwidth) in CASES.items():
        inside: dict[str, list[float]] = {"auto": [], "white": []}
        rng = np.random.default_rng(12)
        for _ in range(repeats):
            q, noisy = (x + s * rng.normal(size=tau.shape) for x, s in ((motion[0], encoder), (tau, 0.1)))
            data = Measurements.from_positions(T, q, noisy, cutoff)
            for noise, own in inside.items():
                found = torsor.identify(
                    CHAIN, data, bandwidth=bandwidth if noise == "auto" else None, noise=noise, friction=()
                )
                own.append(float(np.mean(np.abs(found.values - true) < 1.96 * found.deviations)))
        shown = ", ".join(f"{noise} {100 * np.mean(own):.1f} %" for noise, own in inside.items())
        print(f"coverage of 95 % intervals, {repeats} repeats, {case}: {shown}")


def bias() -> None:
    """Print the errors of the inertias due to encoder noise, for four estimators."""
    robot = CHAIN.with_friction("joint1", smooth=0.05).with_friction("joint2", smooth=0.05)
    motion = swing()
    tau, true = robot.inverse_dynamics(*motion), robot.inertial.base().values
    names = ("least squares", "instruments", "simulated instruments", "output error")
    errors: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        q, noisy = (x + s * rng.normal(size=tau.shape) for x, s in ((motion[0], 5e-4), (tau, 0.1)))
        data = Measurements.from_positions(T, q, noisy, 30.0, trim=False)
        found = torsor.identify(robot, data, friction=())
        estimates = (
            found,
            torsor.identify(robot, data, instruments=motion, friction=()),
            torsor.identify(robot, data, instruments="simulation", friction=()),
            output_error(found, T, q, noisy, window=100),
        )
        for own, each in zip(errors.values(), estimates, strict=True):
            own.append(each.values - true)
    for name, own in errors.items():
        print(f"bias with 0.5 mrad and a cutoff of 30 Hz, {name}: {np.linalg.norm(np.mean(own, axis=0)):.4f}")


def masses() -> None:
    """Print the errors of the masses of a Panda, identified from 60 s of data with 5 % torque noise."""
    real = torsor.library.panda()
    motion = excite(real, 10.0, 5, effort=0.9 * real.effort_limit)(np.arange(60_000) * 1e-3)
    tau, true = real.inverse_dynamics(*motion), np.array([link.mass for link in real.links])
    errors: dict[str, list[np.ndarray]] = {"": [], " and the total mass": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        scale = np.ones(len(real.inertial.values))
        scale[: 10 * len(true)] = np.repeat(rng.uniform(0.5, 1.5, size=len(true)), 10)
        guess = real.inertial.replaced(scale * real.inertial.values)
        noisy = tau + 0.05 * np.sqrt(np.mean(tau**2, axis=0)) * rng.normal(size=tau.shape)
        for own, total in zip(errors.values(), (None, true.sum()), strict=True):
            own.append(np.abs(identify_masses(guess, (*motion, noisy), total=total).values / true - 1))
    for known, own in errors.items():
        each = ", ".join(f"{100 * x:.2f}" for x in np.mean(own, axis=0))
        print(f"masses of the Panda, known shapes{known}: {100 * np.mean(own):.2f} % on average ({each})")


def log_to_result() -> None:
    """Print the warm time to identify a physically consistent robot from a log (60 s at 1 kHz, six joints)."""
    robot, t = torsor.library.ur5(), np.arange(60_000) * 1e-3
    q, v, a = excite(robot, 10.0, 5, lower=-2.0, upper=2.0, velocity=2.5, iterations=20)(t)
    rng = np.random.default_rng(0)
    tau = robot.inverse_dynamics(q, v, a) + rng.normal(size=q.shape)
    table = np.column_stack([t, q + 1e-5 * rng.normal(size=q.shape), tau])
    columns = {"time": 0, "q": list(range(1, 7)), "tau": list(range(7, 13))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        np.savetxt(path, table, delimiter=",", fmt="%.8g")
        for friction in ((), "auto"):
            for run in range(2):
                start = time.perf_counter()
                data = Measurements.load(path, robot, columns, cutoff=30.0)
                read = time.perf_counter() - start
                found = torsor.identify(
                    robot, data, physical=True, friction=friction, bandwidth=20.0, held_out=0.2, robust="huber"
                )
                found.report()
                text = time.perf_counter() - start
                write_identification_report(Path(folder) / "report.html", found)
                page = time.perf_counter() - start
                if run:
                    parts = f"reading {read:.1f} s, text report after {text:.1f} s"
                    print(f"60 s at 1 kHz, 6 joints, friction={friction!r}: HTML report after {page:.1f} s ({parts})")


def free_base(repeats: int) -> None:
    """Print coverage and errors for a quadruped from wrenches at its feet and trunk, without and with joint torques."""
    robot, rng = torsor.library.quadruped(), np.random.default_rng(0)
    q = robot.integrate(robot.neutral(), rng.normal(size=(1000, robot.nv)))
    v, a = rng.normal(size=(2, 1000, robot.nv))
    trunk = robot.inverse_dynamics(q, v, a)[:, :6]
    size = 0.05 * np.sqrt(np.mean(trunk**2, axis=0))
    tau = robot.inverse_dynamics(q, v, a)[:, 6:]
    for name, joints in (("wrenches alone", False), ("wrenches and torques", True)):
        inside, masses = [], []
        for _ in range(repeats):
            noisy = trunk + size * rng.normal(size=trunk.shape)
            torques = tau + 0.05 * np.sqrt(np.mean(tau**2, axis=0)) * rng.normal(size=tau.shape) if joints else None
            data = Measurements.of(robot, q, v, a, torques, external={"trunk": noisy})
            found = torsor.identify(robot, data, noise="white", friction=())
            inside.append(np.mean(np.abs(found.values - found.base.values) < 1.96 * found.deviations))
            masses.append(abs(found.values[0] / found.base.values[0] - 1))
        text = f"coverage {100 * np.mean(inside):.1f} %, total mass {100 * np.mean(masses):.2f} % wrong"
        print(f"quadruped, 1000 samples, 5 % noise, {name}: {text}")


def gymnast(seed: int) -> tuple[Markers, GroundForces, torsor.Robot]:
    """Return markers (1 mm of noise) and ground forces (2 N, 2 mm) of 10 s of gymnastics, and the person.

    The segments deviate from the tables by 10 %, equally on both sides of the body.
    """
    rng, body = np.random.default_rng(seed), torsor.library.human(1.80, 80.0)
    pi, factors = body.inertial.values, dict[str, float]()
    for k, link in enumerate(body.links):
        name = link.name.removeprefix("left_").removeprefix("right_")
        pi[10 * k : 10 * k + 10] *= factors.setdefault(name, 1 + 0.1 * rng.normal())
    pi[: 10 * len(body.links)] *= body.mass / pi[: 10 * len(body.links) : 10].sum()
    person = body.inertial.replaced(pi)
    t, names = np.arange(1000) / 100, list(body.coordinate_names)
    q = np.zeros((len(t), body.nv))
    for k, name in enumerate(names):
        if not any(part in name for part in ("clavicle", "wrist", "neck", "head", "pronation", "toe", "spine")):
            lower, upper = max(body.lower[k], -0.5), min(body.upper[k], 0.5)
            waves = sum(np.sin(rng.uniform(1.0, 6.0) * t + rng.uniform(0, 6)) for _ in range(3)) / 3
            q[:, k] = (lower + upper) / 2 + 0.9 * (upper - lower) / 2 * waves
    legs = ("ASI", "PSI", "TH1", "KNE", "KNM", "SH1", "ANK", "MMAL", "HEE", "TOE", "MT5")
    arms = ("SHO", "UPA", "ELB", "ELM", "FRA", "WRA", "WRB")
    sites = marker_set(body, [*(side + part for part in legs + arms for side in "RL"), "C7", "CLAV", "STRN", "T10"])
    exact = marker_paths(body, sites, t, q)
    seen = Markers(exact.names, t, exact.positions + 1e-3 * rng.normal(size=exact.positions.shape), axes=HUMAN)
    _, v, a = differentiate(t, q, 40.0)
    J = person.jacobian(q, "right_foot", axes="world")[:, :, :6]
    wrench = np.linalg.solve(np.swapaxes(J, 1, 2), person.inverse_dynamics(q, v, a)[:, :6, None])[..., 0]
    moment, force = wrench[:, :3], wrench[:, 3:]  # about the origin of the laboratory
    centre = np.stack([moment[:, 2], 0 * t, -moment[:, 0]], axis=1) / force[:, 1:2]
    left = moment - np.cross(centre, force)
    noise = 2.0 * rng.normal(size=force.shape), 2e-3 * rng.normal(size=force.shape) * [1.0, 0.0, 1.0]
    feet = [np.stack([each, 0 * each], axis=1) for each in (force + noise[0], centre + noise[1], left)]
    return seen, GroundForces(["right", "left"], t, *feet, axes=HUMAN), person


def people(folder: Path | None) -> None:
    """Print the errors of the masses of simulated people, and the residual for a walking man on unused frames."""
    warnings.simplefilter("ignore")
    errors = []  # (people, limbs, 3): of the tables, of the estimate, of the estimate over its deviation
    for seed in range(5):
        markers, forces, person = gymnast(seed)
        found = identify_segments(measured_gait(markers, forces, mass=80.0, height=1.80))
        true = {link.name: link.mass for link in person.links}
        rows = [(true[name], *found.masses[name]) for name in LIMBS]
        errors.append(
            [(given / own - 1, value / own - 1, (value - own) / spread) for own, given, value, spread in rows]
        )
        force, moment = (f"{x:.1f} before, {y:.1f} after" for x, y in zip(found.before, found.after, strict=True))
        print(f"simulated person {seed}, residual of frames not used: {force} (N); {moment} (N m)")
    for k, name in enumerate(LIMBS):
        given, after, own = np.sqrt(np.mean(np.square(errors), axis=0))[k]
        print(f"{name}, RMS: tables {100 * given:.1f} %, identified {100 * after:.1f} %, {own:.1f} deviations")
    if folder is not None:
        markers, forces = (load(folder / name) for name in ("markers_walk.trc", "grf_walk.mot"))
        print(identify_segments(measured_gait(markers.markers, forces.forces, mass=85.3, height=1.80)))


def tx40(folder: Path) -> None:
    """Print the relative error of predicted forces on the last third of a TX40 motion, which identification omits."""
    robot = torsor.load(folder / "tx40.urdf")
    R = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    R[5, 4] = 32.0
    motors, torques = (
        np.loadtxt(folder / name, delimiter=",", skiprows=1)[:37_500] for name in ("pos_read_data.csv", "curr_data.csv")
    )
    q = np.linalg.solve(R, motors.T).T
    q[:, 1:3] += [-np.pi / 2, np.pi / 2]
    data = Measurements.from_positions(np.arange(len(q)) / 5000, q, torques @ R, cutoff=30.0)
    couplings = {"motor_6": {"joint_5": 1.0, "joint_6": 1.0}}
    for name, friction in (("as in the literature", ["offset"]), ("chosen by cross-validation", "auto")):
        found = torsor.identify(robot, data, bandwidth=20.0, held_out=1 / 3, friction=friction, couplings=couplings)
        assert found.held_out is not None
        used, unseen = (", ".join(f"{x:.1f}" for x in each) for each in (found.relative_residuals, found.held_out))
        print(f"TX40, friction {name}: {used} % on the motion used, {unseen} % on the last third, which was not")


CLOSED = {  # amplitude of the drives (rad, m), steps of their encoders
    "four_bar": (2.5, 2e-5),
    "palletiser": (0.5, 2e-5),
    "three_rrr": (0.15, 2e-5),
    "delta": (0.4, 2e-5),
    "gough_stewart": (0.12, 2e-6),
}


def closed_loops(repeats: int) -> None:
    """Print prediction errors for the drives of closed loops on other motions, and the coverage of intervals.

    The simulated logs contain 20 s at 500 Hz with torque noise of 2 %, quantised positions and forces that are 3 ms
    late. The assumed parameters are 30 % too small. The model does not include friction near rest (Stribeck, 2 % of the
    force).
    """
    for name, (size, step) in CLOSED.items():
        real = getattr(torsor.library, name)()
        drives = closed_robot(real)
        log, other = (driven_motion(drives, size, seed, 10_000) for seed in (0, 1))
        rng = np.random.default_rng(2)
        q, tau = step * np.round(log[0] / step), drives.inverse_dynamics(*log)
        extra = 0.02 * tau.std(axis=0)
        tau = tau + extra * near_rest(log[1])
        noisy = tau + 0.02 * tau.std(axis=0) * rng.normal(size=tau.shape)
        late = np.stack([np.interp(T20 - 3e-3, T20, x) for x in noisy.T], axis=1)
        assumed = drives.inertial.replaced(0.7 * drives.inertial.values)
        with tempfile.TemporaryDirectory() as folder:
            path, n = Path(folder) / "log.csv", drives.nv
            np.savetxt(path, np.column_stack([T20, q, late]), delimiter=",", fmt="%.9g")
            columns = {"time": 0, "q": list(range(1, n + 1)), "tau": list(range(n + 1, 2 * n + 1))}
            start = time.perf_counter()
            data = Measurements.load(path, assumed, LogMap(columns, delay="estimate"))
            found = torsor.identify(assumed, data, bandwidth=20.0, friction=())
            whole = time.perf_counter() - start
            physical = torsor.identify(assumed, data, bandwidth=20.0, physical=True, friction=())
        want = drives.inverse_dynamics(*other) + extra * near_rest(other[1])
        errors = [np.sqrt(np.mean((x.predict(*other) - want) ** 2, 0) / np.mean(want**2, 0)) for x in (found, physical)]
        shown = " and ".join(f"{100 * each.max():.2f} %" for each in errors)
        print(f"{name}: {len(found)} base parameters, {whole:.1f} s; errors on another motion {shown} (physical)")
    for name in ("four_bar", "three_rrr"):
        drives = closed_robot(getattr(torsor.library, name)())
        motion = driven_motion(drives, CLOSED[name][0], 0, 2000)
        tau, true = drives.inverse_dynamics(*motion), drives.inertial.base().values
        rng, inside = np.random.default_rng(12), list[float]()
        for _ in range(repeats):
            noisy = tau + 0.02 * tau.std(axis=0) * rng.normal(size=tau.shape)
            found = torsor.identify(drives, (*motion, noisy), friction=())
            inside.append(float(np.mean(np.abs(found.values - true) < 1.96 * found.deviations)))
        print(f"coverage of 95 % intervals, {repeats} repeats, {name}: {100 * np.mean(inside):.1f} %")


def near_rest(v: np.ndarray) -> np.ndarray:
    """Return the Stribeck friction factor, whose characteristic speed is 5 % of the maximum speed."""
    return np.sign(v) * np.exp(-((v / (0.05 * np.abs(v).max(axis=0))) ** 2))


T20 = np.arange(10_000) / 500.0


def driven_motion(drives: ClosedRobot, size: float, seed: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, v, a (count, n) of four sines in each drive about home; ``size`` (rad, m) is their total amplitude."""
    middle = drives.closing.start[drives.mechanism.closed.closure.active_positions]
    rng, t = np.random.default_rng(seed), T20[:count, None, None]
    w = 2 * np.pi * rng.uniform(0.2, 1.2, size=(4, drives.nv))
    phase, part = rng.uniform(0, 2 * np.pi, size=w.shape), rng.uniform(0.3, 1.0, size=w.shape)
    part *= size / part.sum(axis=0)
    angle = w * t + phase
    q, v = middle + (part * np.sin(angle)).sum(axis=1), (part * w * np.cos(angle)).sum(axis=1)
    return q, v, -(part * w**2 * np.sin(angle)).sum(axis=1)


def arm_motion(robot: torsor.Robot, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, v, a (T, n) of a motion with four harmonics per joint up to 1.5 Hz, within the limits and 2 rad."""
    rng = np.random.default_rng(5)
    low, high = (np.clip(x, -2.0, 2.0) for x in (robot.lower, robot.upper))
    w = 2 * np.pi * np.array([0.2, 0.5, 0.9, 1.3])[:, None] * rng.uniform(0.8, 1.2, size=(4, robot.nv))
    phase = rng.uniform(0, 6, size=w.shape)
    size = (high - low) / 2 * np.array([0.4, 0.25, 0.15, 0.1])[:, None]
    angle = w * t[:, None, None] + phase
    q = (low + high) / 2 + (size * np.sin(angle)).sum(axis=1)
    return q, (size * w * np.cos(angle)).sum(axis=1), -(size * w**2 * np.sin(angle)).sum(axis=1)


def arms(repeats: int) -> None:
    """Print coverage for a UR5, and errors and times of the estimators for arms with 6 and 7 joints and friction."""
    for name in ("ur5", "panda"):
        robot = getattr(torsor.library, name)()
        for joint, size in zip(robot.joints, (8, 8, 5, 2, 2, 1, 1), strict=False):
            robot = robot.with_friction(joint.name, coulomb=0.3 * size, viscous=0.5 * size, smooth=0.05)
        t, true = np.arange(4000) * 1e-3, robot.inertial.base().values
        motion = arm_motion(robot, t)
        tau, rng = robot.inverse_dynamics(*motion), np.random.default_rng(0)
        size = np.sqrt(np.mean(tau**2, axis=0))
        q, noisy = motion[0] + 5e-4 * rng.normal(size=tau.shape), tau + 0.01 * size * rng.normal(size=tau.shape)
        data = Measurements.from_positions(t, q, noisy, 30.0, trim=False)
        first = torsor.identify(robot, data, friction=())
        estimators = {
            "least squares": lambda robot=robot, data=data: torsor.identify(robot, data, friction=()),
            "simulated instruments": lambda robot=robot, data=data: torsor.identify(
                robot, data, instruments="simulation"
            ),
            "output error": lambda first=first, t=t, q=q, noisy=noisy: output_error(first, t, q, noisy, window=100),
        }
        for how, estimator in estimators.items():
            start = time.perf_counter()
            found = estimator()
            spent = time.perf_counter() - start
            error = 100 * np.sqrt(np.mean((found.predict(*motion) - tau) ** 2, axis=0)) / size
            worst = np.abs(found.values - true).max() / np.abs(true).max()
            print(f"{name}, 0.5 mrad, {how}: forces {error.max():.2f} %, parameters {worst:.3f}, {spent:.1f} s")
    robot = torsor.library.ur5().with_friction(coulomb=1.0, viscous=1.0)
    t = np.arange(8000) * 1e-3
    motion = arm_motion(robot, t)
    tau, true, inside = robot.inverse_dynamics(*motion), robot.inertial.base().values, []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        q = motion[0] + 1e-4 * rng.normal(size=tau.shape)
        noisy = tau + 0.02 * np.sqrt(np.mean(tau**2, axis=0)) * rng.normal(size=tau.shape)
        found = torsor.identify(robot, Measurements.from_positions(t, q, noisy, 10.0), bandwidth=20.0, friction=())
        inside.append(np.abs(found.values - true) < 1.96 * found.deviations)
    each = np.mean(inside, axis=0)
    print(
        f"coverage for the UR5, {repeats} repeats: {100 * each.mean():.1f} %, of a parameter {100 * each.min():.1f} %"
    )


def main() -> None:
    """Print all results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--tx40", type=Path)
    parser.add_argument("--walk", type=Path)
    arguments = parser.parse_args()
    if arguments.tx40 is not None:
        tx40(arguments.tx40)
    free_base(arguments.repeats // 4)
    people(arguments.walk)
    log_to_result()
    masses()
    bias()
    coverage(arguments.repeats)
    closed_loops(arguments.repeats)
    arms(arguments.repeats)


if __name__ == "__main__":
    main()
