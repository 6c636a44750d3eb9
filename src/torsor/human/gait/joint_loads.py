"""Fatigue by walking: the loads of the joints over a stride, and the strength that remains after many strides."""

from collections.abc import Mapping

import numpy as np

from torsor.base.checks import instance_of, number, table, whole_number
from torsor.base.errors import ModelError, describe
from torsor.human.body.coordinates import SIDES, is_odd
from torsor.human.body.fatigue import Fatigue, JointLoads
from torsor.human.body.strength import CURVED_JOINTS, joint_strength
from torsor.human.contact.schedule import Walk
from torsor.human.terms.forces import Strengths, Torques
from torsor.motion import MotionResult


def joint_loads(result: MotionResult) -> JointLoads:
    """Return the loads of the joints over a stride of a solved walk, with the ground's wrenches on the feet.

    Each load is the mean of the two ends of an interval. If the walk is one step that repeats mirrored, each side
    begins with its own heel strike, so that both sides have the same loads. If the walk has strength curves, the
    strengths of hips, knees and ankles are those at their angles and velocities.
    """
    pairs = ((batch, rows) for batch in result.program.batches for rows in batch.kernels.constraints)
    batch, torques = next(((batch, rows) for batch, rows in pairs if isinstance(rows, Torques)), (None, None))
    if batch is None or torques is None:
        found = f"the result of {result.problem.name!r}"
        raise ModelError(describe(found, where="joint loads", allowed="one of torsor.human.walking()"))
    terms = zip(batch.kernels.constraints, batch.kernels.rows, strict=True)
    labels = [(rows, label) for rows, bound in terms for label in bound.labels]
    values = batch.value(result.x)[0].reshape(len(batch.s), -1)
    curves = next((rows.curves for rows in batch.kernels.constraints if isinstance(rows, Strengths)), None)
    moments, body = result.at(batch.s * result.T), torques.body
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
    ends = {name: np.interp(even, batch.s, each) for name, each in fractions.items()}
    means = {name: (each[1:] + each[:-1]) / 2 for name, each in ends.items()}
    seconds = result.T / (len(batch.s) - 1)
    if isinstance(torques.support, Walk) and torques.support.steps == 1:
        means = {name: np.concatenate([sign * means[each] for each, sign in _stride(name)]) for name in means}
    return JointLoads(seconds, means)


def _stride(name: str) -> list[tuple[str, float]]:
    """Return which coordinate gives the load of a coordinate in the step and in its mirror image, and its sign."""
    side, _, joint = name.partition("_")
    if side in SIDES:
        return [(f"{each}_{joint}", 1.0) for each in SIDES]
    return [(name, 1.0), (name, -1.0 if is_odd(name) else 1.0)]


def fatigued(
    loads: JointLoads | MotionResult, repetitions: int, rest: float = 0.0, laws: Mapping[str, Fatigue] | None = None
) -> list[dict[str, float]]:
    """Return the remaining strength, {coordinate: factor}, after each of a number of repetitions with a ``rest`` (s).

    The factors can be given to ``walking(strength=...)``; each is that of the more tired direction. ``laws`` replaces
    ``Fatigue.of`` the name for some coordinates.

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
            raise ModelError(describe(f"laws: {name!r} is {law!r}", where="fatigue", allowed=allowed))
    found = [dict[str, float]() for _ in range(repetitions)]
    for name, fractions in loads.fractions.items():
        law = laws.get(name, Fatigue.of(name))
        for sign in (-1.0, 1.0):
            own, left = np.maximum(sign * fractions, 0.0), 1.0
            for each in found:
                left = law.rested(rest, float(law.after(own, loads.seconds, left)[-1]))
                each[name] = min(left, each.get(name, 1.0))
    return found
