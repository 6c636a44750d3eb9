"""Groups of terms that are evaluated at the same moments, so that shared quantities of the robot are computed once."""

from collections.abc import Sequence

import numpy as np

from torsor.base.arrays import Array
from torsor.motion.terms.term import Cost, Term
from torsor.motion.transcription.motion_model import MotionModel
from torsor.motion.transcription.phase import Phase

Key = tuple[int, tuple[float, ...], tuple[float, ...], str]  # phase, moments, weights of the integral, `together`


def grouped(phases: Sequence[Phase], terms: Sequence[Term], model: MotionModel) -> dict[Key, list[Term]]:
    """Return groups of terms by phase, moments, weights of the integral, and ``together``.

    Example:
        >>> from torsor.motion import Effort, Time, Torques
        >>> model = MotionModel(torsor.library.two_link())
        >>> groups = grouped([Phase(1.0, nodes=11)], [Time(), Effort(), Torques(upper=1.0)], model)
        >>> [(len(moments), [term.title for term in group]) for (_, moments, *_), group in groups.items()]
        [(36, ['Time', 'Effort']), (11, ['Torques'])]
    """
    found: dict[Key, list[Term]] = {}
    for index, phase in enumerate(phases):
        for term in terms:
            if term.has_rows and term.holds_in(index, phase):
                moments, weights = moments_of(term, phase, model)
                key = index, tuple(moments.tolist()), tuple(weights.tolist()), term.together
                found.setdefault(key, []).append(term)
    return _with_constants(_merge_constraints(found))


def moments_of(term: Term, phase: Phase, model: MotionModel) -> tuple[Array, Array]:
    """Return the moments (K,) of a term, and the weights (K,) of its integral or sum; 0 for constraints."""
    if isinstance(term, Cost) and not term.is_sum:
        return phase.integral(*term.during, term.fewest(model))
    moments = term.moments(phase)
    return moments, np.full(len(moments), float(isinstance(term, Cost)))


def _merge_constraints(groups: dict[Key, list[Term]]) -> dict[Key, list[Term]]:
    """Return groups with constraints merged into integrals over the same moments."""
    integrals = {(phase, moments, word): weights for phase, moments, weights, word in groups if any(weights)}
    merged: dict[Key, list[Term]] = {}
    for (phase, moments, weights, word), terms in groups.items():
        own = weights if any(weights) else integrals.get((phase, moments, word), weights)
        merged.setdefault((phase, moments, own, word), []).extend(terms)
    return merged


def _with_constants(groups: dict[Key, list[Term]]) -> dict[Key, list[Term]]:
    """Return groups with constant integrands, such as the duration, moved to the moments of constraints."""
    found = dict(groups)
    for (phase, moments, weights, word), terms in groups.items():
        if all(isinstance(each, Cost) and each.is_even and not each.is_sum for each in terms):
            rows = next((key for key in found if key[0] == phase and not any(key[2])), None)
            if rows is not None:
                del found[phase, moments, weights, word]
                found[phase, rows[1], (sum(weights), *rows[2][1:]), rows[3]] = [*found.pop(rows), *terms]
    return found
