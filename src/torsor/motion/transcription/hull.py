"""Bounds on control points: a spline stays within the convex hull of its control points, so these hold everywhere."""

import numpy as np

from torsor.arrays import Array
from torsor.errors import ModelError, describe
from torsor.motion.terms.term import TOUCHING, Term
from torsor.motion.transcription.layout import Layout
from torsor.motion.transcription.motion_model import MotionModel


def bound_control_points(
    term: Term, model: MotionModel, layout: Layout, lower: Array, upper: Array, where: str
) -> None:
    """Tighten ``lower`` and ``upper`` (n,) of the control points that shape a profile while a term holds."""
    bounds, (begin, end) = term.point_bounds(model), term.during
    where = f"{where}: {term.title}"
    for index, phase_layout in enumerate(layout.phases):
        if not bounds or not term.holds_in(index, phase_layout.phase):
            continue
        for profile, (least, most) in bounds.items():
            name, spline = model.names[profile], phase_layout.splines[profile]
            first, last = spline.knots[: spline.count], spline.knots[spline.degree + 1 :]
            near = (first < end) & (last > begin) | (spline.matrix([begin, end]) != 0).any(axis=0)
            columns, known = (
                each[profile, : spline.count][near] for each in (phase_layout.columns, phase_layout.known)
            )
            given = known[columns < 0]
            beyond = given[~((given >= least - TOUCHING) & (given <= most + TOUCHING))]
            if beyond.size:
                found = f"{name} is given as {beyond.tolist()} at an end"
                raise ModelError(describe(found, where=where, allowed=f"{least} to {most}"))
            free = columns[columns >= 0]
            lower[free], upper[free] = np.maximum(lower[free], least), np.minimum(upper[free], most)
            if (lower[free] > upper[free]).any():
                found = f"no control points of {name} are within {least} to {most} and within another term's bounds"
                raise ModelError(describe(found, where=where))
