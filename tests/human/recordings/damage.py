"""A recording of a predicted walk, and ways to damage it on purpose, as happens in laboratories.

``predicted_walk.npz`` has 26 markers (100 Hz) and the ground forces of both feet (200 Hz) of 1.8 s of the version
"clean" of ``torsor.human.walking``, with marker places of ``marker_set``, and its moments; noise is added here.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from torsor.human.recordings import GroundForces, Markers

Trial = tuple[Markers, GroundForces]
MASS = 73.0  # kg


def clean(seed: int = 0) -> Trial:
    """Return the markers and the forces of the feet, with noise of 0.5 mm and 0.5 N."""
    rng = np.random.default_rng(seed)
    with np.load(Path(__file__).with_name("predicted_walk.npz")) as file:
        positions = file["positions"] + 0.0005 * rng.normal(size=file["positions"].shape)
        axes = "forward up right"
        markers = Markers(tuple(file["names"].tolist()), file["times"], positions, axes=axes, source="walk.trc")
        forces = file["forces"] + 0.5 * rng.normal(size=file["forces"].shape)
        parts = (forces, file["centers"].astype(float), file["moments"].astype(float))
        feet = GroundForces(("right", "left"), file["force_times"], *parts, axes=axes, source="walk.mot")
    return markers, feet


def torques() -> dict[str, np.ndarray]:
    """Return the moments (K,) in N m that the walk was predicted with, at the times of the markers."""
    with np.load(Path(__file__).with_name("predicted_walk.npz")) as file:
        return dict(zip(file["coordinates"].tolist(), file["torques"].astype(float).T, strict=True))


def on_plates(trial: Trial) -> Trial:
    """Return the trial on two plates of a laboratory: one whole contact of each foot, nothing else."""
    markers, feet = trial
    loads, t = np.zeros((2, len(feet))), feet.times
    loads[0, (t > 0.25) & (t < 1.0)] = 1.0
    loads[1, (t > 0.75) & (t < 1.5)] = 1.0
    forces, moments = (each * loads.T[:, :, None] for each in (feet.forces, feet.moments))
    return markers, replace(feet, names=("plate 1", "plate 2"), forces=forces, moments=moments)


def turned(trial: Trial, axes: str) -> Trial:
    """Return the trial as a file in other axes has it."""
    return trial[0].in_axes(axes), trial[1].in_axes(axes)


def moved(change: Callable[[np.ndarray, list[str]], None]) -> Callable[[Trial], Trial]:
    """Return the damage that changes the places (K, M, 3) of markers."""

    def damaged(trial: Trial) -> Trial:
        positions = np.array(trial[0].positions)
        change(positions, list(trial[0].names))
        return trial[0].with_positions(positions), trial[1]

    return damaged


def forced(**changes: Callable[[np.ndarray], np.ndarray]) -> Callable[[Trial], Trial]:
    """Return the damage that changes arrays of the forces."""
    return lambda trial: (
        trial[0],
        replace(trial[1], **{name: change(np.array(getattr(trial[1], name))) for name, change in changes.items()}),
    )


def _gap(x: np.ndarray, names: list[str]) -> None:
    x[60:75, names.index("RKNE")] = np.nan


def _never(x: np.ndarray, names: list[str]) -> None:
    x[:, names.index("LASI")] = np.nan


def _swap(first: str, second: str, frames: slice) -> Callable[[np.ndarray, list[str]], None]:
    def change(x: np.ndarray, names: list[str]) -> None:
        pair = [names.index(first), names.index(second)]
        x[frames, pair] = x[frames, pair[::-1]]

    return change


def _spike(x: np.ndarray, names: list[str]) -> None:
    x[90, names.index("RTOE")] += [0.0, 0.08, 0.05]


def _frozen(x: np.ndarray, names: list[str]) -> None:
    x[100:120, names.index("RELB")] = x[100, names.index("RELB")]


def _shifted(by: float) -> Callable[[Trial], Trial]:
    return lambda trial: (trial[0], replace(trial[1], times=trial[1].times + by))


def _treadmill(trial: Trial) -> Trial:
    markers, forces = trial
    way = np.array([1.2, 0.0, 0.0])
    centers = forces.centers - forces.times[:, None, None] * way
    return markers.with_positions(markers.positions - markers.times[:, None, None] * way), replace(
        forces, centers=centers
    )


def _two_plates_one_foot(trial: Trial) -> Trial:
    markers, plates = on_plates(trial)
    shares = np.array([0.4, 0.6, 1.0])[:, None]
    forces, moments = (each[:, [0, 0, 1]] * shares for each in (plates.forces, plates.moments))
    names = ("plate 1", "plate 2", "plate 3")
    return markers, replace(plates, names=names, forces=forces, moments=moments, centers=plates.centers[:, [0, 0, 1]])


def _one_plate_two_feet(trial: Trial) -> Trial:
    markers, plates = on_plates(trial)
    whole = plates.without_unloaded(5.0).wrench().sum(axis=1, keepdims=True)
    one = replace(
        plates, names=("plate 1",), **{n: np.zeros((len(plates), 1, 3)) for n in ("forces", "centers", "moments")}
    )
    return markers, one.with_wrench(whole)


def _offset(trial: Trial) -> Trial:
    markers, plates = on_plates(trial)
    offset = np.array([0.0, 0.0, 0.0, 0.0, 30.0, 0.0])
    return markers, plates.with_wrench(plates.without_unloaded(5.0).wrench() + offset)


def _z_up(trial: Trial) -> Trial:
    found = turned(trial, "forward left up")
    return replace(found[0], axes="forward up right"), replace(found[1], axes="forward up right")


def _forces_z_up(trial: Trial) -> Trial:
    return trial[0], replace(trial[1].in_axes("forward left up"), axes="forward up right")


def _forces_backward(trial: Trial) -> Trial:
    return trial[0], replace(trial[1].in_axes("back up left"), axes="forward up right")


# Name of the damage: the kind of the finding, words of its message, and what is done.
DAMAGE: dict[str, tuple[str, str, Callable[[Trial], Trial]]] = {
    "a marker with a gap": ("gap", "'RKNE' frames 61 to 75", moved(_gap)),
    "a marker that is never seen": ("missing", "'LASI'", moved(_never)),
    "markers in mm": ("unit", "the markers extend over", moved(lambda x, _: np.multiply(x, 1000, out=x))),
    "markers in m that are read as mm": (
        "unit",
        "the markers extend over",
        moved(lambda x, _: np.multiply(x, 0.001, out=x)),
    ),
    "two markers exchanged from a frame on": (
        "swap",
        "'RKNE' and 'LKNE' at frame 71",
        moved(_swap("RKNE", "LKNE", slice(70, None))),
    ),
    "two markers exchanged for some frames": (
        "swap",
        "'RANK' and 'RHEE' at frame 51",
        moved(_swap("RANK", "RHEE", slice(50, 60))),
    ),
    "right and left exchanged": ("sides", "'RASI' and 'LASI'", moved(_swap("RASI", "LASI", slice(None)))),
    "heel and toe exchanged": ("swap", "'RHEE' is ahead of 'RTOE'", moved(_swap("RHEE", "RTOE", slice(None)))),
    "knee and ankle exchanged": ("swap", "'LKNE' is below 'LANK'", moved(_swap("LKNE", "LANK", slice(None)))),
    "a spike": ("jump", "'RTOE' at frame 91", moved(_spike)),
    "a frozen marker": ("frozen", "'RELB' from frame 101 to 120", moved(_frozen)),
    "a treadmill": ("treadmill", "at 1.18 m/s: the person walks on a treadmill", _treadmill),
    "a file with z up": ("axes", "extends along z", _z_up),
    "forces with z up": ("axes", "is along z, but up is y", _forces_z_up),
    "forces turned backward": ("place", "m from the nearer foot", _forces_backward),
    "fore-aft forces with the wrong sign": (
        "axes",
        "fore-aft forces are reversed",
        forced(forces=lambda f: f * [-1.0, 1.0, 1.0]),
    ),
    "lateral forces with the wrong sign": (
        "axes",
        "lateral forces are reversed",
        forced(forces=lambda f: f * [1.0, 1.0, -1.0]),
    ),
    "forces on the plate": ("axes", "is along -y, but up is y", forced(forces=lambda f: -f)),
    "forces in kN": ("unit", "likely in kN", forced(forces=lambda f: f / 1000)),
    "moments in N mm": ("unit", "free moment reaches", forced(moments=lambda m: 1000 * m)),
    "centres of pressure in mm": ("unit", "centre of pressure is at", forced(centers=lambda c: 1000 * c)),
    "swapped feet": (
        "feet",
        "feet are swapped: 'left' from",
        lambda trial: (trial[0], trial[1].renamed({"right": "left", "left": "right"})),
    ),
    "a plate with an offset": ("offset", "plate 1: 30 N while the plate is empty", _offset),
    "forces 50 ms late": ("times", "ms after the motion that they cause", _shifted(0.05)),
    "forces 50 ms early": ("times", "ms before the motion that they cause", _shifted(-0.05)),
    "forces of another time": ("times", "do not overlap in time", _shifted(60.0)),
    "one foot on two plates": ("shared", "the right foot is on plate 1 and plate 2", _two_plates_one_foot),
    "two feet on one plate": ("shared", "both feet are on plate 1", _one_plate_two_feet),
}
