"""Analysis of a recording: leg angles, moments and powers from markers and ground forces."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rich.console import RenderableType

from torsor.base.archive import Archive, reading_archive
from torsor.base.arrays import Array, Flags
from torsor.base.checks import instance_of, number, one_of, table
from torsor.base.documents import plain
from torsor.base.errors import ModelError, describe, listing, warn
from torsor.base.figures import label_of_title, new_figure, saved, styled
from torsor.base.files import check_array
from torsor.base.html_report import html_text, image, in_motion, terminal_table, write_html
from torsor.base.result import Result
from torsor.base.summary import Summary, titled_table
from torsor.base.tables import Column, write_table
from torsor.base.time_series import Instants, SampledInstants, Series
from torsor.human.body.coordinates import JOINT_AXES, OSIM_NAMES, SIDES
from torsor.human.body.strength import HEIGHT
from torsor.human.measured.inverse_dynamics import (
    CUTOFF,
    LARGE_RESIDUAL,
    MeasuredDynamics,
    inverse_dynamics,
    large_residual,
)
from torsor.human.measured.inverse_kinematics import MeasuredMotion, inverse_kinematics
from torsor.human.measured.marker_set import MarkerSet
from torsor.human.measured.person import Person, scaled_person
from torsor.human.measured.progression import ANGLES, Progression, progression
from torsor.human.measured.skeleton import Skeleton, skeleton, tree_of
from torsor.human.measured.steps import Heel, SpatioTemporal, heel_markers, spatio_temporal
from torsor.human.recordings import (
    Event,
    Finding,
    GroundForces,
    Markers,
    MotionTable,
    OsimModel,
    by_foot,
    inspect,
    save,
)
from torsor.human.recordings.axes import HUMAN, OPENSIM
from torsor.human.recordings.contacts import Contact, FootEvents, contacts, foot_events, strike_times
from torsor.human.recordings.recording import LOAD_THRESHOLD, at_times, checked_markers, runs
from torsor.motion.encoding import packed, unpacked
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WHERE = "measured gait"
# Leg coordinates in tables, with names of ``library.human`` without the side.
JOINTS = ("hip_flexion", "hip_adduction", "hip_rotation", "knee_flexion", "ankle_flexion")
LEG = (*JOINTS, "ankle_inversion")
COLOURS = {"right": "#1f4e8c", "left": "#d98b2b"}
# Titles of angles and moments by joint; moments are drawn in the direction of support.
CURVE_TITLES = {
    "hip_flexion": ("hip flexion", "hip extension"),
    "knee_flexion": ("knee flexion", "knee extension"),
    "ankle_flexion": ("ankle dorsiflexion", "ankle plantarflexion"),
}
SLIDES = ("tx", "ty", "tz")  # name endings of coordinates in m
PER_MASS = ("N", "N m", "W")  # units of columns that can be divided by the mass
TABLES = (".mot", ".sto")
NO_STANDING = "there is no standing trial: dorsiflexion may be off by about 10 degrees; add one with --standing"
NO_HEIGHT = f"the height is not given: {HEIGHT:g} m is the prior of the segment lengths; add it with --height"
SIGNS = (
    "Flexion, adduction, internal rotation and dorsiflexion are positive. Moments are internal: those of muscles and "
    "ligaments. Tables, and the charts beside the motion in 3D, have the signs of the angles; figures show extension, "
    "abduction and plantarflexion moments."
)
TILT = (
    "The plane of ASIS and PSIS leans 11 degrees forward at zero pelvic tilt: add 11 degrees to pelvic tilt and hip "
    "flexion for the values of Plug-in Gait. The band of hip flexion is lowered by 11.6 degrees, the children's mean "
    "tilt."
)
OPENSIM_TILT = "The band of hip flexion has the zero of Plug-in Gait, which is similar to that of OpenSim's skeleton."


@dataclass(frozen=True, eq=False)
class MeasuredGait(Result):
    """The result of ``measured_gait``.

    ``motion`` is the result of inverse kinematics. ``dynamics`` is the result of inverse dynamics, and ``ground``
    contains the unfiltered forces on the feet (both are None without ground forces). ``filters`` describes the filters.
    ``person`` is the scaled body (None with an OpenSim skeleton). ``findings`` are likely errors in the ``recording``,
    whose markers are in body axes, large residual forces, and events that contradict the forces. ``events`` are the
    foot strikes and foot offs that replace those of the forces; on the sides ``given``, they are the argument
    ``strikes`` of ``measured_gait``. ``steps`` contains the spatio-temporal parameters.
    Angles are in degrees, and moments and powers are divided by the mass (kg). Moments are internal, with the signs of
    the angles: hip and knee flexion and ankle dorsiflexion are positive. Without ground forces, ``force``, ``moment``
    and ``power`` raise ModelError.
    """

    kind = "measured_gait"
    suffixes = (*Result.suffixes, *TABLES)
    undefined = ("errors", "positions", "centers")  # NaN for unseen markers and unloaded plates

    motion: MeasuredMotion
    mass: float
    dynamics: MeasuredDynamics | None = None
    ground: GroundForces | None = None
    person: Person | None = None
    findings: tuple[Finding, ...] = ()
    source: str = "recording"
    recording: Markers | None = None
    filters: str = ""
    events: tuple[Event, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def times(self) -> Array:
        """Times (K,) (s) of the dynamics, or of the motion if ``dynamics`` is None."""
        return self.motion.times if self.dynamics is None else self.dynamics.times

    @cached_property
    def _series(self) -> Series:
        dynamics = self.dynamics
        if dynamics is None:
            return Series.of(self.source, self.motion.times, self.motion.q)
        return Series.of(self.source, dynamics.times, dynamics.q, dynamics.v, dynamics.a, dynamics.forces)

    def at(self, t: ArrayLike) -> Instants:
        """Return interpolated q (..., n) at times t (...) (s) and, with ground forces, v, a and tau."""
        return SampledInstants(self._series, t)

    def coordinate(self, side: str, joint: str) -> str:
        """Return the coordinate name of a joint of the "right" or "left" leg, such as "knee_flexion"."""
        one_of(side, SIDES, WHERE, "side")
        one_of(joint, LEG, WHERE, "joint")
        name, names = self._name(side, joint), self.motion.body.coordinate_names
        if name not in names:
            allowed = listing(names, like=name)
            what = f"there is no coordinate {f'{side}_{joint}'!r} or {name!r}"
            raise ModelError(what, where=self.source, allowed=allowed)
        return name

    def _name(self, side: str, joint: str) -> str:
        """Return the name of a coordinate in Torsor's body or in an OpenSim skeleton."""
        name = f"{side}_{joint}"
        return name if name in self.motion.body.coordinate_names else f"{OSIM_NAMES[joint]}_{side[0]}"

    def angle(self, side: str, joint: str) -> Array:
        """Return a joint angle (K,) in degrees, or that of the pelvis or foot relative to the direction of progression.

        The latter are "pelvis_tilt" (positive if forward), "pelvis_obliquity" (if this side is low), "pelvis_rotation"
        (if this side is in front) and "foot_progression" (if the toes point inward). The direction of progression is
        that of the mean pelvis velocity. With ground forces, the angles are filtered.
        """
        if joint not in ANGLES:
            return np.degrees(self._q[:, self._index(side, joint)])
        values = self.turned(side, joint)
        if values is None:
            raise ModelError(f"the body has no link for {joint!r}", where=self.source, allowed="a pelvis and feet")
        return values

    def turned(self, side: str, name: str) -> Array | None:
        """Return an angle (K,) of the pelvis or a foot (see ``angle``), or None if the body has no such link."""
        return self._progression.angle(one_of(side, SIDES, WHERE, "side"), one_of(name, tuple(ANGLES), WHERE, "name"))

    @cached_property
    def _progression(self) -> Progression:
        return progression(self.motion.body, self.times, self._q)

    def moment(self, side: str, joint: str) -> Array:
        """Return a joint moment (K,) (N m/kg)."""
        return self._dynamics.moment(self.coordinate(side, joint)) / self.mass

    def power(self, side: str, joint: str) -> Array:
        """Return the power (K,) (W/kg) of "hip", "knee" or "ankle", summed over its axes, or of one coordinate."""
        names = self.motion.body.coordinate_names
        axes = [name for name in JOINT_AXES.get(joint, ()) if self._name(side, name) in names] or [joint]
        powers = [self.moment(side, axis) * self._dynamics.v[:, self._index(side, axis)] for axis in axes]
        return np.asarray(sum(powers))

    def force(self, side: str) -> Array:
        """Return the ground reaction force (K, 3) on a foot, divided by body weight: rightward, upward and forward."""
        if self.ground is None:
            raise ModelError("the recording has no ground forces", where=self.source, fix="pass the ground forces")
        ground = self.ground.in_axes(HUMAN).without_unloaded()
        forces = ground.forces[:, ground.index(side)] * [-1.0, 1.0, 1.0]
        return np.asarray(at_times(self.times, ground.times, forces) / self._dynamics.weight)

    def strikes(self, side: str) -> tuple[float, ...]:
        """Return the foot strikes (s) of ``events`` that replace those of the forces.

        A single strike is used only if the foot does not load a plate.
        """
        strikes = self._events.get(one_of(side, SIDES, WHERE, "side"), FootEvents()).strikes
        return strikes if len(strikes) > 1 or not _on_plates(self.ground, side) else ()

    def contacts(self, side: str) -> list[Contact]:
        """Return the contacts of the "right" or "left" foot: of its ``events`` or, without them, of the ground forces.

        A contact has the attributes ``strike`` and ``off`` (s), which are None if they are unknown.
        """
        measured = _on_plates(self.ground, one_of(side, SIDES, WHERE, "side"))
        return self._events[side].contacts(measured) if self.strikes(side) else measured

    def _source_of_strikes(self, side: str) -> str:
        if not self.strikes(side):
            return "plates"
        return "given" if side in self.given else "events"

    @cached_property
    def _events(self) -> dict[str, FootEvents]:
        return foot_events(self.events)

    @cached_property
    def steps(self) -> SpatioTemporal | None:
        """Spatio-temporal parameters, such as speed, cadence and step length, or None without contacts of the feet.

        Footprints are the positions of the heel markers, or of the heels of the body, at heel strikes.
        """
        feet = {side: self.contacts(side) for side in SIDES}
        if not any(feet.values()):
            return None
        times, heels = self.motion.times, heel_markers(self.recording)
        if heels is None:
            poses = progression(self.motion.body, times, self.motion.q).feet
            heels = {side: Heel(times, foot[:, :3, 3]) for side, foot in poses.items()}
        return spatio_temporal(heels, feet)

    @cached_property
    def valid(self) -> Flags:
        """Flags (K,) of samples with a residual force below a quarter of body weight, where motion and forces agree."""
        if self.dynamics is None:
            return np.ones(len(self.times), dtype=bool)
        return np.asarray(np.linalg.norm(self.dynamics.residual_force, axis=1) < LARGE_RESIDUAL * self.dynamics.weight)

    def outside(self, first: float, last: float) -> str:
        """Return a remark on times from ``first`` to ``last`` (s) that are not ``valid``, or ""."""
        spans = [(self.times[a], self.times[b]) for a, b in runs(~self.valid)]
        cut = [(max(a, first), min(b, last)) for a, b in spans if a < last and b > first]
        if not cut:
            return ""
        when = ", ".join(f"{a:.2f} to {b:.2f} s" for a, b in cut)
        what = "motion and ground forces disagree, usually because the other foot is beside the plates"
        return f"from {when}, {what}; moments hold only for a leg whose foot is on a plate or in the air"

    @property
    def _dynamics(self) -> MeasuredDynamics:
        if self.dynamics is None:
            raise ModelError("the recording has no moments", where=self.source, fix="pass the ground forces")
        return self.dynamics

    @property
    def _q(self) -> Array:
        return self.motion.q if self.dynamics is None else self.dynamics.q

    def _index(self, side: str, joint: str) -> int:
        return self.motion.body.coordinate_names.index(self.coordinate(side, joint))

    def tables(self) -> list[RenderableType]:
        """Return tables for the terminal: facts, spatio-temporal parameters, ranges of angles, moments and powers."""
        facts = titled_table(f"Recording {self.source}", "what", "value")
        for name, value in self.facts.items():
            facts.add_row(name, value)
        head = ["joint", "angle, deg"] + ([] if self.dynamics is None else ["moment, N m/kg"])
        shown = titled_table("Minimum and maximum in the valid interval", *head)
        kinds = [self.angle] if self.dynamics is None else [self.angle, self.moment]
        for side in SIDES:
            for joint in JOINTS:
                cells = [self._range(kind(side, joint), n) for kind, n in zip(kinds, (1, 2), strict=False)]
                shown.add_row(f"{side} {joint.replace('_', ' ')}", *cells)
        tables = [facts, *self.step_tables(), shown]
        if self.dynamics is not None:
            powers = titled_table("Minimum and maximum joint power (all axes), W/kg", "joint", *SIDES)
            for joint in JOINT_AXES:
                powers.add_row(joint, *(self._range(self.power(side, joint), 2) for side in SIDES))
            tables.append(powers)
        return tables

    def _range(self, curve: Array, places: int) -> str:
        """Return the minimum and maximum in the valid interval as text."""
        values = curve[self.valid]
        return f"{values.min():.{places}f} to {values.max():.{places}f}" if len(values) else "-"

    def step_tables(self) -> list[RenderableType]:
        """Return the table of spatio-temporal parameters, if there is a complete stride."""
        if self.steps is None or self.steps.speed is None:
            return []
        title = f"Spatio-temporal parameters ({self.steps.right.strides} right, {self.steps.left.strides} left strides)"
        table = titled_table(title, "parameter", *SIDES, "both")
        for name, *values, places in self.steps.rows:
            table.add_row(name, *("-" if value is None else f"{value:.{places}f}" for value in values))
        return [table]

    @property
    def standing_notes(self) -> tuple[str, ...]:
        """A remark if there is no standing trial, which OpenSim skeletons do not need."""
        return (NO_STANDING,) if self.person is not None and not self.person.standing else ()

    @property
    def facts(self) -> dict[str, str]:
        """Facts of the recording as text."""
        frame, marker, worst = self.motion.worst
        lines = {
            "frames": f"{len(self.motion.times)}, {self.motion.times[0]:g} to {self.motion.times[-1]:g} s",
            "mass": f"{self.mass:.4g} kg",
            "marker error, RMS": f"{1000 * self.motion.total_rms:.1f} mm ({len(self.motion.markers.names)} markers)",
            "worst marker": f"{marker}, {1000 * worst:.0f} mm at frame {frame + 1}",
        }
        ignored = () if self.recording is None else set(self.recording.names) - set(self.motion.markers.names)
        if ignored:
            lines["ignored markers"] = listing(sorted(ignored))
        if self.filters:
            lines["low-pass filters"] = self.filters
        strikes = {side: [at.strike for at in self.contacts(side) if at.strike is not None] for side in SIDES}
        if any(strikes.values()):
            lines["heel strikes, s"] = "; ".join(
                f"{side} {', '.join(f'{time:.2f}' for time in times)} ({self._source_of_strikes(side)})"
                if times
                else f"{side} -"
                for side, times in strikes.items()
            )
        if self.person is not None:
            lengths = ", ".join(f"{name} {1000 * length:.0f}" for name, length in self.person.lengths.items())
            lines["lengths, mm"] = lengths
        if self.dynamics is not None:
            kept = self.dynamics.only(self.valid) if self.valid.any() else self.dynamics
            force, moment = kept.residual
            spans = ", ".join(f"{self.times[a]:.2f} to {self.times[b]:.2f}" for a, b in runs(self.valid))
            lines["valid interval, s"] = spans or "none"
            residual = f"{100 * force:.1f} % of the weight, {moment * kept.weight:.1f} N m"
            lines["residual in this interval, RMS"] = residual
        return lines

    def columns(self, per_kg: bool = False) -> list[Column]:
        """Return the columns of a .csv file: angles, moments and powers of all coordinates, foot forces and residuals.

        With ground forces, the angles are filtered. The column "valid" is 1 where ``valid`` is True. With ``per_kg``,
        forces, moments and powers are divided by the mass.
        """
        if per_kg:
            return [
                Column(name, f"{unit}/kg", values / self.mass) if unit in PER_MASS else Column(name, unit, values)
                for name, unit, values in self.columns()
            ]
        names = self.motion.body.coordinate_names
        slides = [name.endswith(SLIDES) for name in names]
        q = np.where(slides, self._q, np.degrees(self._q))

        def of_all(what: str, units: Sequence[str], values: Array) -> list[Column]:
            columns = zip(names, slides, values.T, strict=True)
            return [Column(f"{what} {name}", units[slide], curve) for name, slide, curve in columns]

        written = [Column("time", "s", self.times), *of_all("q", ("deg", "m"), q)]
        if self.dynamics is None:
            return written
        written.insert(1, Column("valid", "1", self.valid.astype(int)))
        written += of_all("tau", ("N m", "N"), self.dynamics.forces)
        written += of_all("power", ("W", "W"), self.dynamics.forces * self.dynamics.v)
        for side in SIDES:
            force = self.force(side) * self.dynamics.weight
            ways = zip(("right", "up", "forward"), force.T, strict=True)
            written += [Column(f"force {side} foot {way}", "N", values) for way, values in ways]
        parts = (("force", "N", self.dynamics.residual_force), ("moment", "N m", self.dynamics.residual_moment))
        return written + [
            Column(f"residual {part} {axis}", unit, values[:, k])
            for part, unit, values in parts
            for k, axis in enumerate("xyz")
        ]

    def table(self) -> MotionTable:
        """Return the unfiltered coordinates (degrees, m) of all frames with their names, for a .mot file."""
        names, q = self.motion.body.coordinate_names, self.motion.q
        values = np.where([name.endswith(SLIDES) for name in names], q, np.degrees(q))
        return MotionTable(names, self.motion.times, values, in_degrees=True, title=self.source)

    def save(self, path: str | Path, per_kg: bool = False) -> None:
        """Write the gait as .npz (for ``load_result``), all curves as .csv or .json, or the angles as .mot or .sto.

        With ``per_kg``, forces, moments and powers in the .csv file are divided by the mass, and headers, such as
        "tau_right_knee_flexion_Nm_per_kg", are valid variable names in MATLAB.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if per_kg and suffix != ".csv":
            raise ModelError("is only for .csv files", argument="per_kg", where=path.name, fix="omit `per_kg`")
        if per_kg:
            write_table(path, self.columns(per_kg), plain=True)
        elif suffix in TABLES:
            save(self.table(), path)
        else:
            super().save(path)

    @classmethod
    def load(cls, path: str | Path) -> "MeasuredGait":
        """Load a gait from a .npz file."""
        with reading_archive(Path(path), cls.kind) as archive:
            return _checked(unpacked(dict(archive.arrays)))

    def _archive(self) -> Archive:
        return Archive(self.kind, packed(self, self.source), {})

    def _content(self) -> dict[str, Any]:
        return {
            "units": {"mass": "kg", "curves": "in brackets", "steps": "s, m, m/s, steps/min, % of the stride"},
            "file": self.source,
            "mass": self.mass,
            "facts": self.facts,
            "findings": [finding._asdict() for finding in self.findings],
            "steps": self.steps and self.steps.as_dict(),
            "curves": {curve.head: plain(curve.values) for curve in self.columns()},
        }

    def _columns(self) -> list[Column]:
        return self.columns()

    def _summary(self) -> Summary:
        return Summary(f"Measured gait {self.source}", self.facts)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Plot angles, moments, powers and ground forces over time; return the figure and, with ``path``, save it."""
        rows = 1 if self.dynamics is None else 4
        figure = new_figure(11.0, 2.3 * rows + 0.9)
        grid = figure.add_gridspec(rows, 3)

        def panel(row: int, column: int, curves: Mapping[str, Array], title: str, unit: str) -> None:
            axes = figure.add_subplot(grid[row, column])
            for name, values in curves.items():
                shown = np.where(self.valid | ~self.valid.any(), values, np.nan) if name in SIDES else values
                axes.plot(self.times, shown, color=COLOURS.get(name, "0.3"), linewidth=1.8, label=name)
            for first, last in runs(~self.valid):
                axes.axvspan(self.times[first], self.times[last], color="0.93", linewidth=0, zorder=0)
            styled(axes, title, unit)
            axes.set_xlim(self.times[0], self.times[-1])
            if row == rows - 1:
                axes.set_xlabel("time, s")

        for column, (joint, (angle, moment)) in enumerate(CURVE_TITLES.items()):
            panel(0, column, {side: self.angle(side, joint) for side in SIDES}, angle, "deg")
            if self.dynamics is not None:
                moments = {side: -self.moment(side, joint) for side in SIDES}
                panel(1, column, moments, f"{moment} moment", "N m/kg")
                name = joint.partition("_")[0]
                powers = {side: self.power(side, name) for side in SIDES}
                panel(2, column, powers, f"{name} power", "W/kg")
        if self.dynamics is not None:
            for column, (k, title) in enumerate(((1, "vertical force"), (2, "forward force"))):
                panel(3, column, {side: self.force(side)[:, k] for side in SIDES}, title, "body weights")
            size = np.linalg.norm(self.dynamics.residual_force, axis=1) / self.dynamics.weight
            panel(3, 2, {"residual": 100 * size}, "residual force", "% of the weight")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
        how = f"{len(self.motion.markers.names)} markers, {1000 * self.motion.total_rms:.1f} mm RMS"
        how += ", no standing trial" if self.person is not None and not self.person.standing else ""
        grey = "" if self.valid.all() else "\ngrey: motion and ground forces disagree, a foot may miss the plates"
        figure.suptitle(label_of_title(f"{self.source}: {self.mass:.4g} kg, {how}{grey}"))
        return saved(figure, path, dpi=100)

    def trajectory(self) -> Trajectory:
        """Return the motion as a trajectory; the ground forces are external wrenches on the feet.

        Wrenches with a force of at most 20 N are set to zero. Without ground forces, accelerations and joint forces are
        zero, and velocities are finite differences. With an OpenSim skeleton, joint forces are always zero.
        """
        body, dynamics, q = self.motion.body, self.dynamics, self._q
        v, a, tau = np.zeros((3, *q.shape)) if dynamics is None else (dynamics.v, dynamics.a, dynamics.forces)
        if dynamics is None and len(q) > 1:
            v = np.gradient(q, self.times, axis=0)
        external = None if dynamics is None else dynamics.external
        if external is not None:  # excludes feet that barely touch the ground, whose centre of pressure is arbitrary
            external = np.where(
                np.linalg.norm(external[..., 3:], axis=2, keepdims=True) > LOAD_THRESHOLD, external, 0.0
            )
        if isinstance(body, Robot):
            return Trajectory(body, self.times, q, v, a, tau, external=external)
        x, xd, xdd = body.states(q, v, a)
        return Trajectory(body.tree, self.times, x, xd, xdd, np.zeros_like(x), external=external)


def _checked(gait: Any) -> MeasuredGait:
    """Return the gait from a file; raise ValueError if it is not a gait or if its arrays are inconsistent."""
    if not isinstance(gait, MeasuredGait):
        raise ValueError(f"it is {type(gait).__name__}")
    needed = {"motion": MeasuredMotion, "mass": float, "source": str, "findings": tuple, "filters": str}
    needed |= {"events": tuple, "given": tuple}
    optional = {"dynamics": MeasuredDynamics, "ground": GroundForces, "person": Person, "recording": Markers}
    for name, cls in (needed | optional).items():
        part = getattr(gait, name)
        if not isinstance(part, cls) and (name in needed or part is not None):
            raise ValueError(f"{name} is {type(part).__name__}")
    motion, dynamics = gait.motion, gait.dynamics
    if not isinstance(motion.body, (Robot, Skeleton)) or not isinstance(motion.markers, MarkerSet):
        raise ValueError("it has no body with markers")
    count, size = len(np.atleast_1d(motion.times)), len(motion.body.coordinate_names)
    seen = (count, len(motion.markers.names))
    shapes: dict[str, tuple[int, ...]] = {"times": (count,), "q": (count, size), "errors": seen}
    for name, shape in shapes.items():
        check_array(getattr(motion, name), shape, f"motion/{name}")
    for name in ("converged", "determined"):
        check_array(getattr(motion, name), (count,), f"motion/{name}", "b")
    if dynamics is not None:
        count = len(np.atleast_1d(dynamics.times))
        shapes = {"times": (count,), **dict.fromkeys(("q", "v", "a", "forces"), (count, size))}
        shapes |= dict.fromkeys(("residual_force", "residual_moment"), (count, 3))
        shapes["external"] = (count, len(tree_of(motion.body).links), 6)
        for name, shape in shapes.items():
            check_array(getattr(dynamics, name), shape, f"dynamics/{name}")
    return gait


def measured_gait(
    markers: Markers,
    forces: GroundForces | None = None,
    *,
    events: Sequence[Event] = (),
    strikes: Mapping[str, ArrayLike] | None = None,
    mass: float | None = None,
    height: float | None = None,
    sex: str = "male",
    standing: Markers | None = None,
    model: OsimModel | None = None,
    frozen: Mapping[str, float] | None = None,
    cutoff: float = CUTOFF,
    force_cutoff: float | None = None,
    smooth: float = 0.0,
) -> MeasuredGait:
    """Return angles, moments and powers of a recorded person, from markers and ground forces.

    Without a ``model``, the body is ``library.human``, scaled to the markers and to the ``mass`` (kg), ``height`` (m)
    and ``sex`` (``scaled_person``); ``standing`` is a standing trial. The default height is 1.741 m. With a scaled
    ``model`` (``recordings.read_osim``), the joints, masses and markers of the model are used. ``frozen`` {coordinate:
    value} fixes coordinates. Force plates are assigned to feet by means of the markers. For ``cutoff`` and
    ``force_cutoff`` (Hz, by default ``cutoff``), see ``inverse_dynamics``; for ``smooth``, see ``inverse_kinematics``.

    ``events`` are those of a C3D file (``Recording.events``). If they contain two or more strikes of a foot, these
    replace the heel strikes of the ground forces. ``strikes`` {"left": times} (s) replaces the strikes of a side.

    Warnings are issued for likely errors in the recording, which are also stored in ``findings``.
    """
    checked_markers(markers, WHERE, "markers")
    optional = {"forces": (forces, GroundForces), "standing": (standing, Markers), "model": (model, OsimModel)}
    for what, (part, kind) in optional.items():
        if part is not None:
            instance_of(part, kind, WHERE, what)
    half = 0.5 * markers.rate if markers.rate else math.inf  # checked before the fit
    number(cutoff, WHERE, "cutoff (Hz)", above=0.0, most=half)
    if force_cutoff is not None:
        number(force_cutoff, WHERE, "force_cutoff (Hz)", above=0.0, finite=False)
    used, given = _used_events(events, strikes), tuple(table(strikes, WHERE, "strikes"))
    parts: list[Any] = [markers] if forces is None else [markers, forces]
    findings = tuple(inspect(*parts))
    if events and not foot_events(events):
        what = f"no event is a foot strike or foot off of a side: {listing([event.name for event in events])}"
        findings += (Finding("events", describe(what, where=markers.source, fix="rename them, or give `strikes`")),)
    if height is None and standing is None and model is None:
        findings += (Finding("height", NO_HEIGHT),)
    for finding in findings:
        warn(str(finding))
    person, body, local, turned = _who(markers, mass, HEIGHT if height is None else height, sex, standing, model)
    motion = inverse_kinematics(body, local, turned, frozen=frozen, smooth=smooth)
    weight = float(body.mass)
    if forces is None:
        return MeasuredGait(motion, weight, None, None, person, findings, markers.source, turned, "", used, given)
    ground = forces.in_axes(turned.axes) if turned.axes and forces.axes else forces
    if not set(SIDES) <= set(ground.names):
        ground = by_foot(ground, turned)
    contradictions = tuple(_contradictions(used, given, ground, markers.source))
    for finding in contradictions:
        warn(str(finding))
    findings += contradictions
    kept = (motion.times >= ground.times[0] - 1e-9) & (motion.times <= ground.times[-1] + 1e-9)
    if kept.sum() < 2:
        fix = "load files of the same trial"
        raise ModelError("and forces do not overlap in time", argument="markers", where=markers.source, fix=fix)
    dynamics = inverse_dynamics(
        body, motion.times[kept], motion.q[kept], ground, cutoff=cutoff, force_cutoff=force_cutoff
    )
    fault = large_residual(dynamics, cutoff)
    findings += (Finding("residual", describe(**fault)),) if fault else ()
    limits = (f"{cutoff:g} Hz", f"{cutoff:g} Hz" if force_cutoff is None else f"{force_cutoff:g} Hz")
    filters = f"motion {limits[0]}, forces {limits[1]}".replace("inf Hz", "unfiltered")
    source = markers.source
    return MeasuredGait(motion, weight, dynamics, ground, person, findings, source, turned, filters, used, given)


def _used_events(events: Sequence[Event], strikes: Mapping[str, ArrayLike] | None) -> tuple[Event, ...]:
    """Return the foot strikes and foot offs of ``events``; ``strikes`` {side: times} replace those of a side."""
    feet = foot_events(events)
    for side, times in table(strikes, WHERE, "strikes").items():
        feet[one_of(side, SIDES, WHERE, "side of strikes")] = FootEvents(tuple(strike_times(times, WHERE)))
    names = ("Foot Strike", "Foot Off")
    return tuple(
        sorted(
            Event(time, f"{side.capitalize()} {name}")
            for side, foot in feet.items()
            for name, times in zip(names, foot, strict=True)
            for time in times
        )
    )


def _on_plates(ground: GroundForces | None, side: str) -> list[Contact]:
    """Return the contacts of a foot in the ground forces."""
    if ground is None or side not in ground.names:
        return []
    vertical = ground.vertical[:, ground.index(side)]
    return contacts(ground.times, vertical) if vertical.max(initial=0.0) > 0 else []


def _contradictions(
    events: Sequence[Event], given: Sequence[str], ground: GroundForces, source: str
) -> Iterator[Finding]:
    """Yield a finding for each foot whose events, or ``given`` strikes, contradict the ground forces."""
    for side, foot in foot_events(events).items():
        contact = foot.contradicted(_on_plates(ground, side))
        if contact is not None:
            ends = [time for time in contact if time is not None]
            span = " to ".join(f"{time:.3g}" for time in ends)
            times = " and ".join(
                f"{name} at {', '.join(f'{time:.3g}' for time in each)} s"
                for name, each in zip(("strikes", "offs"), foot, strict=True)
                if each
            )
            kind = "given strikes" if side in given else "events"
            what = f"the {side} foot loads the plates from {span} s, but its {kind}, which are used, are {times}"
            fix = "correct `strikes`" if side in given else "correct the events, or give `strikes`"
            yield Finding("events", describe(what, where=source, fix=fix))


def _who(
    markers: Markers, mass: float | None, height: float, sex: str, standing: Markers | None, model: OsimModel | None
) -> tuple[Person | None, Robot | Skeleton, Any, Markers]:
    """Return the person (None for a skeleton), the body, its markers, and the recording in body axes."""
    if model is not None:
        for name, value in (("mass", mass), ("standing", standing)):
            if value is not None:
                fix = f"omit {name}, or scale the model first: torsor.human.measured.scaled_skeleton(model, ...)"
                raise ModelError("cannot be combined with a model", argument=name, where=WHERE, fix=fix)
        bones = skeleton(model)
        return None, bones, bones.markers, markers.in_axes(OPENSIM) if markers.axes else markers
    if mass is None:
        raise ModelError("the mass is missing", where=WHERE, fix="pass it in kg, as in `mass=80`, or pass a model")
    turned = markers.in_axes(HUMAN) if markers.axes else markers
    still = standing.in_axes(HUMAN) if standing is not None and standing.axes else standing
    person = scaled_person(turned, mass, height, sex, standing=still)
    return person, person.body, person.markers, turned


class CycleFigure(NamedTuple):
    """A figure of the gait cycle in a report, with its ``title`` and ``notes`` below it."""

    title: str
    figure: "Figure"
    notes: Sequence[str] = ()


def write_measured_report(
    path: str | Path, gait: MeasuredGait, *, cycles: Sequence[CycleFigure] = (), notes: Sequence[str] = ()
) -> Path:
    """Write the report on a measured gait (``torsor.human.measured``) as an offline HTML page.

    The report contains findings on the recording and its residuals, spatio-temporal parameters, figures of angles,
    moments, powers and forces, and the motion in 3D. ``cycles`` are figures of the gait cycle, and ``notes`` are
    additional remarks.
    """
    instance_of(gait, MeasuredGait, "report", "gait", allowed="a result of torsor.human.measured.measured_gait")
    name = f"{gait.source}: {gait.mass:.4g} kg"
    remarks = [*map(str, gait.findings), *notes, *gait.standing_notes]
    tilt = OPENSIM_TILT if gait.person is None else TILT  # OpenSim models have different pelvis axes
    parts = [f"<h1>{escape(name)}</h1>", *(f'<p class="remark">{html_text(remark)}</p>' for remark in remarks)]
    facts, *tables = gait.tables()
    steps = len(gait.step_tables())
    parts += map(terminal_table, tables[:steps])
    for k, cycle in enumerate(cycles):
        below = [f"<p>{html_text(note)}</p>" for note in (*cycle.notes, *([] if k else [tilt]))]
        parts += [f"<h2>{escape(cycle.title)}</h2>", image(cycle.figure), *below]
    parts += [f"<h2>Recording</h2><p>{SIGNS}</p>", image(gait.plot()), *map(terminal_table, [facts, *tables[steps:]])]
    return write_html(Path(path), name, [*parts, *in_motion(gait, name)])
