"""A complete stride of a walk or a run: its curves, with figures, terminal tables, and plain values for JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Group
from rich.table import Table

from torsor.base.archive import Archive, reading_archive, register_result
from torsor.base.checks import instance_of, number, table, whole_number
from torsor.base.documents import plain
from torsor.base.errors import ModelError
from torsor.base.result import Result
from torsor.base.summary import Summary, as_text, titled_table
from torsor.base.tables import Column, columns_of
from torsor.human.body.coordinates import GLOBAL, is_odd, other_side
from torsor.human.body.fatigue import Fatigue, JointLoads
from torsor.human.body.strength import CURVED_JOINTS, joint_strength
from torsor.human.contact.contact_forces import ground_reaction
from torsor.human.contact.schedule import Walk, described
from torsor.human.gait.curves import StrideCurves
from torsor.human.gait.figures import plot
from torsor.human.terms.forces import Strengths, Torques
from torsor.human.terms.objectives import MuscleTorques
from torsor.human.terms.problem import REACTION_JOINTS, sampled, walk_of, who
from torsor.mechanism.mechanism import robot_facts
from torsor.motion import MotionProblem, MotionResult, load_problem
from torsor.motion.results.files import archive, of_archive

if TYPE_CHECKING:
    from matplotlib.figure import Figure


INSTANTS = 401  # samples of the flight phase


class FreeFall(NamedTuple):
    """The largest deviations from free fall in a flight phase.

    ``force`` (divided by body weight) and ``moment`` about the pelvis (divided by body weight times 1 m) are residuals
    of the six global coordinates. ``away`` (m) is the distance of the centre of mass from the best-fitting parabola.
    """

    force: float
    moment: float
    away: float


def free_fall(stride: StrideCurves) -> FreeFall:
    """Return the deviations of the flight phase of a run from free fall, at 401 samples."""
    if not stride.is_run:
        raise ModelError("a walk has no flight phase", where="free fall", allowed="a stride of running()")
    result, body = stride.result, stride.body
    s = np.linspace(walk_of(result.problem)[1].step.toe_off, 1.0, INSTANTS)
    at, t = sampled(result, s), result.program.layout.phases[0].times(result.x, s)
    needed, com = ground_reaction(body, at.q, at.v, at.a), body.center_of_mass(at.q)
    moment = needed.moment - np.cross(body.pose(at.q, "pelvis")[:, :3, 3], needed.force)
    rest = com - np.outer(t**2 / 2, body.gravity)
    lines = np.stack([np.ones_like(t), t], axis=1)
    away = rest - lines @ np.linalg.lstsq(lines, rest, rcond=None)[0]
    force, turn = (float(np.linalg.norm(vectors, axis=1).max()) / stride.weight for vectors in (needed.force, moment))
    return FreeFall(force, turn, float(np.linalg.norm(away, axis=1).max()))


def joint_loads(result: MotionResult) -> JointLoads:
    """Return the joint loads over a stride of a solved walk, including the effect of the ground wrenches.

    Each load is the mean over the two ends of an interval. If the walk is one step that is repeated in mirror image,
    each side begins with its own heel strike, so that both sides have the same loads. If the walk has strength curves,
    the strengths of hips, knees and ankles depend on their angles and velocities. The loads of walks and runs are
    muscle loads, without the passive torques.
    """
    pairs = ((batch, rows) for batch in result.program.batches for rows in batch.kernels.constraints)
    limits = (Torques, MuscleTorques)
    batch, torques = next(((batch, rows) for batch, rows in pairs if isinstance(rows, limits)), (None, None))
    if batch is None or torques is None:
        what = f"the result belongs to the problem {result.problem.name!r}"
        allowed = "a result of torsor.human.walking()"
        raise ModelError(what, value=result.problem.name, where="joint loads", allowed=allowed)
    terms = zip(batch.kernels.constraints, batch.kernels.rows, strict=True)
    labels = [(rows, label) for rows, bound in terms for label in bound.labels]
    values = batch.value(result.x)[0].reshape(len(batch.s), -1)
    curves = next((rows.curves for rows in batch.kernels.constraints if isinstance(rows, Strengths)), None)
    layout = result.program.layout.phases[0]
    passed = layout.phase.timing.numeric(batch.s, result.x[list(layout.ticks)])  # fractions of the duration
    moments, body = result.at(passed * result.T), torques.body
    fractions = {}
    for column, (rows, name) in zip(values.T, labels, strict=True):
        if rows is torques:
            fraction = column * torques.strength.get(name, 1.0)
            if curves is not None and name.endswith(CURVED_JOINTS):
                k = body.coordinate_names.index(name)
                lower, upper = joint_strength(body, name, moments.q[:, k], moments.v[:, k], curves)
                fraction = fraction * body.effort_limit[k] / np.where(fraction < 0, -lower, upper)
            fractions[name] = fraction
    even = np.linspace(0.0, 1.0, len(batch.s))  # the nodes may be unevenly spaced
    ends = {name: np.interp(even, passed, values) for name, values in fractions.items()}
    means = {name: (values[1:] + values[:-1]) / 2 for name, values in ends.items()}
    seconds = result.T / (len(batch.s) - 1)
    if isinstance(torques.support, Walk) and torques.support.steps == 1:
        # In the mirror image, trunk and pelvis have the load of the same coordinate, and limbs that of the other side.
        steps = dict(means)
        for name in means:
            first, sign = name.replace("left_", "right_", 1), -1.0 if is_odd(name) else 1.0
            means[name] = np.concatenate([steps[first], sign * steps[other_side(first)]])
    return JointLoads(seconds, means)


def fatigued(
    loads: JointLoads | MotionResult, repetitions: int, rest: float = 0.0, laws: Mapping[str, Fatigue] | None = None
) -> list[dict[str, float]]:
    """Return the remaining strengths {coordinate: factor} after each of ``repetitions``, with ``rest`` (s) in between.

    ``loads`` are those of one repetition, or a result of ``walking``, for which ``joint_loads`` computes them. The
    factors can be passed to ``walking(strength=...)``; each applies to the more fatigued direction. ``laws`` replaces
    the default ``Fatigue.of(name)`` for some coordinates.

    Example:
        >>> lifting = JointLoads(1.0, {"right_knee_flexion": np.array([-0.6, -0.6, 0.2])})
        >>> factors = fatigued(lifting, 20, rest=2.0)
        >>> round(factors[0]["right_knee_flexion"], 3), round(factors[-1]["right_knee_flexion"], 3)
        (0.983, 0.813)
    """
    repetitions = whole_number(repetitions, "fatigue", "repetitions")
    rest = number(rest, "fatigue", "rest", least=0.0, finite=False)
    loads = joint_loads(loads) if isinstance(loads, MotionResult) else loads
    loads = instance_of(loads, JointLoads, "fatigue", "loads", allowed="a result of a walk, or JointLoads")
    laws = table(laws, "fatigue", "laws")
    for name, law in laws.items():
        if name not in loads.fractions or not isinstance(law, Fatigue):
            allowed = f"a Fatigue of one of {', '.join(loads.fractions)}"
            raise ModelError(f"laws: {name!r} is {law!r}", where="fatigue", allowed=allowed)
    factors = [dict[str, float]() for _ in range(repetitions)]
    for name, fractions in loads.fractions.items():
        law = laws.get(name, Fatigue.of(name))
        for sign in (-1.0, 1.0):
            load, left = np.maximum(sign * fractions, 0.0), 1.0
            for factor in factors:
                left = law.rested(rest, float(law.after(load, loads.seconds, left)[-1]))
                factor[name] = min(left, factor.get(name, 1.0))
    return factors


SHOWN_ANGLES = (
    *("hip_flexion", "hip_adduction", "hip_rotation", "knee_flexion", "ankle_flexion", "toe_extension"),
    *("tilt", "list", "yaw", "shoulder_flexion", "elbow_flexion"),
)
ENERGY = (
    "positive",
    "negative",
    "ground",
    "change",
    "residual",
    "distance",
    "mechanical_work",
    "metabolic",
    "cost_of_transport",
)
MOTION = "motion/"  # prefix of the motion in a file
UNITS = {
    "speed": "m/s", "step_length": "m", "step_width": "m", "step_rise": "m", "duration": "s", "mass": "kg",
    "energy": "J; distance m; mechanical_work and cost_of_transport J/(kg m)",
    "peaks": "angles degrees; moments N m/kg; powers W/kg; forces and reactions body weights",
    "curves.angles": "degrees", "curves.moments": "N m/kg", "curves.powers": "W/kg",
    "curves.forces": "body weights: own and other foot; medial, up, forward",
    "curves.pressure": "m: own and other foot; x, z", "curves.reactions": "body weights: medial, up, forward",
    "curves.kinetic": "J", "curves.potential": "J",
}  # fmt: skip
MOMENTS = ("hip_extension", "hip_abduction", "knee_extension", "ankle_plantarflexion")


class Stride(Result, StrideCurves):
    """The stride of one ``side`` ("right" by default, or "left") in the ``result`` of a walk or run.

    ``result`` is that of ``torsor.human.walking(...).solve()`` or ``running(...).solve()``.

    All curves have 401 equally spaced samples, from heel strike to heel strike of that side. Names are coordinate
    names of the body without the side ("hip_flexion", "list"). Moments may also be named after the opposite direction
    ("hip_extension"). Forces are divided by the weight, and moments and powers by the mass, of the body with its load.
    A left stride is mirrored: vectors are (medial, up, forward) for either side, which are the base axes for the right
    side. ``likeness`` compares a walk with measured walks, ``report()`` returns tables, and ``plot`` returns a figure.
    """

    kind = "stride"

    @classmethod
    def load(cls, path: str | Path, problem: MotionProblem | None = None) -> "Stride":
        """Return the stride from a .npz file; ``problem`` is needed if the file does not include it."""
        with reading_archive(Path(path), cls.kind) as archive:
            motion = of_archive(archive.part(MOTION), problem, load_problem)
            return cls(MotionResult.of(motion), str(archive.settings["side"]))

    def _archive(self) -> Archive:
        return Archive(self.kind, archive(self.result).within(MOTION), {"side": self.side}, {MOTION: "as in a motion"})

    def _content(self) -> dict[str, Any]:
        """Return objective terms, peaks, similarity, energy and curves as plain values."""
        step = self.step
        pressure = [[None if np.isnan(point).any() else point.tolist() for point in foot] for foot in self.pressure]
        return {
            "units": UNITS,
            "robot": robot_facts(self.body),
            "settings": plain(self.result.settings),
            "side": self.side,
            "speed": step.speed,
            "step_length": step.length,
            "step_width": step.width,
            "step_rise": step.rise,
            "duration": self.duration,
            "mass": self.body.mass,
            "objective": {part.title: part.weighted for part in self.result.parts},
            "peaks": peaks(self),
            "energy": {name: getattr(self.energy, name) for name in ENERGY}
            | {"work": {name: work._asdict() for name, work in self.energy.work.items()}},
            "likeness": self.likeness().to_dict()["curves"],
            "curves": {
                "share": self.s.tolist(),  # a key of saved files, which must not change
                "angles": {name: self.angle(name).tolist() for name in SHOWN_ANGLES},
                "moments": {name: self.moment(name).tolist() for name in MOMENTS},
                "powers": {name: self.power(name).tolist() for name in REACTION_JOINTS},
                "forces": self.forces.tolist(),
                "pressure": pressure,
                "reactions": {name: self.reaction(name).tolist() for name in REACTION_JOINTS},
                "kinetic": self.kinetic.tolist(),
                "potential": self.potential.tolist(),
            },
        }

    def _columns(self) -> list[Column]:
        names = ("medial", "up", "forward")
        columns = [Column("time", "s", self.s * self.duration), Column("share of the stride", "1", self.s)]
        for which, other in (("", False), ("other ", True)):
            moved = [name for name in SHOWN_ANGLES if not other or name not in GLOBAL]  # the pelvis has no sides
            columns += [Column(f"angle {which}{name}", "degrees", self.angle(name, other=other)) for name in moved]
            columns += [Column(f"moment {which}{name}", "N m/kg", self.moment(name, other=other)) for name in MOMENTS]
            columns += [
                Column(f"power {which}{name}", "W/kg", self.power(name, other=other)) for name in REACTION_JOINTS
            ]
        for k, foot in enumerate(("own", "other")):
            columns += columns_of(f"force {foot} foot", names, ["body weights"] * 3, self.forces[:, k])
            columns += columns_of(f"pressure {foot} foot", ("x", "z"), ["m"] * 2, self.pressure[:, k])
        for joint in REACTION_JOINTS:
            columns += columns_of(f"reaction {joint}", names, ["body weights"] * 3, self.reaction(joint))
        return [*columns, Column("kinetic energy", "J", self.kinetic), Column("potential energy", "J", self.potential)]

    def _summary(self) -> Summary:
        step, vertical = self.step, peaks(self)["vertical"]
        facts = {
            "who": who(self.result.problem),
            "status": self.result.status,
            "speed": described(step),
            "duration": f"{self.duration:.4g} s, with a foot on the ground for {100 * self.stance:.0f} % of it",
            "vertical force": ", ".join(f"{name} {100 * part:.0f} %" for name, part in vertical.items()) + " of weight",
            "positive work": f"{self.energy.mechanical_work:.3f} J/(kg m)",
            "cost of transport": f"{self.energy.cost_of_transport:.3f} J/(kg m), metabolic",
        }
        rows = [
            (name, f"{likeness.correlation:.2f}", f"{likeness.rms:.3g}") for name, likeness in self.likeness().items()
        ]
        head = ("compared with people", "r", "RMSE") if rows else ()
        return Summary(f"{self.side.capitalize()} stride", facts, head, rows)

    def report(self, width: int = 110) -> str:
        """Return text tables, ``width`` characters wide: objective terms, peaks, energy, similarity to measurements."""
        return as_text(self, width=width)

    def __rich__(self) -> Any:
        result, energy, total = self.result, self.energy, self.result.objective
        parts = titled_table(f"Objective of the solved {result.problem.name}", "part", "value", "of the total")
        for part in result.parts:
            parts.add_row(part.title, f"{part.weighted:.6f}", f"{100 * part.weighted / total:.1f} %" if total else "")
        parts.add_section()
        parts.add_row("objective", f"{total:.6f}", "")
        work = titled_table(f"Work over {energy.distance:g} m (J)", "joint", "positive", "negative", "sum")
        for name, joint in energy.work.items():
            work.add_row(name.replace("_", " "), f"{joint.positive:.2f}", f"{joint.negative:.2f}", f"{joint.total:.2f}")
        work.add_section()
        work.add_row("all joints", f"{energy.positive:.2f}", f"{energy.negative:.2f}", f"{energy.joints:.2f}")
        work.add_row("ground, at slipping or rolling feet", "", "", f"{energy.ground:.2f}")
        work.add_row("energy change", "", "", f"{energy.change:.2f}")
        work.add_row("residual of the energy balance", "", "", f"{energy.residual:.1e}")
        work.add_row("positive work, J/(kg m)", "", "", f"{energy.mechanical_work:.3f}")
        work.add_row("metabolic cost of transport, J/(kg m)", "", "", f"{energy.cost_of_transport:.3f}")
        people = self.likeness()
        return Group(parts, peaks_table(self), work, *([people] if people else []))

    def plot(self, path: str | Path | None = None, references: Any = None, sagittal: bool = False) -> "Figure":
        """Return a figure (matplotlib, extra ``plot``) of the curves and measured curves; save it if ``path`` is given.

        ``references`` are the built-in ones by default, recordings of people, or other strides; see ``likeness``.
        If ``sagittal`` is true, only the eleven sagittal curves are drawn.
        """
        return plot(self, path, references, sagittal=sagittal)


register_result("stride", Stride, "a stride")


def _ends(curve: Any) -> dict[str, float]:
    return {"least": float(curve.min()), "most": float(curve.max())}


def peaks(stride: StrideCurves) -> dict[str, Any]:
    """Return "least" and "most" of angles (degrees), moments (N m/kg), powers (W/kg), and forces (body weights).

    "reactions" are the maximum norms of joint reactions, and "knee_in_swing" is the maximum knee flexion in swing. In
    a walk, the vertical force has two peaks, "first" and "second", with a "valley" between them; in a run, it has one
    "peak".
    """
    swing = stride.s > min(0.6, stride.stance)
    return {
        "angles": {name: _ends(stride.angle(name)) for name in SHOWN_ANGLES},
        "moments": {name: _ends(stride.moment(name)) for name in MOMENTS},
        "powers": {name: _ends(stride.power(name)) for name in REACTION_JOINTS},
        "reactions": {name: float(np.linalg.norm(stride.reaction(name), axis=1).max()) for name in REACTION_JOINTS},
        "vertical": _vertical(stride),
        "forward": _ends(stride.force[:, 2]),
        "medial": _ends(stride.force[:, 0]),
        "knee_in_swing": float(stride.angle("knee_flexion")[swing].max()),
    }


def _vertical(stride: StrideCurves) -> dict[str, float]:
    """Return the peaks of the vertical force (over body weight), and for a walk the valley between them."""
    up, s = stride.force[:, 1], stride.s
    if stride.is_run:
        return {"peak": float(up.max())}
    first, second = s < 0.27, (s > 0.33) & (s < 0.65)
    between = slice(int(np.argmax(np.where(first, up, 0.0))), int(np.argmax(np.where(second, up, 0.0))) + 1)
    ends = {"first": up[first].max(), "valley": up[between].min(), "second": up[second].max()}
    return {name: float(value) for name, value in ends.items()}


def peaks_table(stride: StrideCurves) -> Table:
    """Return the table of the ``peaks`` of a stride."""
    values, step = peaks(stride), stride.step
    walk = f"{described(step)}, {stride.body.mass:.1f} kg"
    title = f"{stride.side.capitalize()} stride: {walk}"
    if not stride.result.is_feasible:
        title += f"; it violates its constraints: {stride.result.status}"
    table = titled_table(title, "quantity", "minimum", "maximum", "unit")
    for key, unit, digits in (("angles", "degrees", 1), ("moments", "N m/kg", 2), ("powers", "W/kg", 2)):
        for name, ends in values[key].items():
            words = name.replace("_", " ") + (" power" if key == "powers" else " moment" if key == "moments" else "")
            table.add_row(words, f"{ends['least']:.{digits}f}", f"{ends['most']:.{digits}f}", unit)
        table.add_section()
    for name in ("forward", "medial"):
        table.add_row(f"{name} force", *(f"{100 * share:.1f}" for share in values[name].values()), "% of weight")
    vertical = {name: f"{100 * share:.1f}" for name, share in values["vertical"].items()}
    if stride.is_run:
        table.add_row("vertical force", "0.0", vertical["peak"], "% of weight")
        table.add_row("residual force in flight", "", f"{100 * free_fall(stride).force:.1f}", "% of weight")
    else:
        both = f"{vertical['first']}, {vertical['second']}"
        table.add_row("vertical force: valley; peaks", vertical["valley"], both, "% of weight")
    for name, value in values["reactions"].items():
        table.add_row(f"{name} reaction", "", f"{100 * value:.1f}", "% of weight")
    return table
