"""Motions of a human for viewers: walks and tasks with the forces of the ground, and what the body carries."""

from dataclasses import replace
from functools import partial

import numpy as np

from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.contact.schedule import Walk
from torsor.human.gait.curves import StrideCurves
from torsor.human.gait.figures import animate
from torsor.human.tasks.things import things_of
from torsor.human.terms.forces import Grounded
from torsor.human.terms.problem import HumanProblem, presses, pressure, sampled, walk_of, who
from torsor.motion import MotionResult
from torsor.motion.problem import timeline_of_term
from torsor.simulation.timeline import Timeline, timeline_of

REPEAT_TOLERANCE = 1e-3  # largest difference (rad, m) of the ends of a motion that goes on


@timeline_of_term.register
def _(term: Grounded, result: MotionResult) -> Timeline:
    """Return a walk as its stride, and a task of a human on its feet with the forces of the ground and of a seat."""
    if isinstance(term.support, Walk):
        return replace(timeline_of(StrideCurves(result)), movie=partial(animate, result))
    body, problem, s = term.body, result.problem, result.times / result.T
    at, tau, external = sampled(result, s), None, None
    if isinstance(problem, HumanProblem):
        tau, external = problem.contact(result)
    states, ground = (result.times, at.q, at.v, at.a), presses(result, s)
    title = f"{who(problem)}: {problem.name}"
    found = Timeline(body, title, *states, tau, body.coordinate_names, external, ground)
    return replace(found, things=things_of(problem, term.support), movie=partial(animate, result))


@timeline_of.register
def _(stride: StrideCurves) -> Timeline:
    body, at, problem = stride.body, stride.samples, stride.result.problem
    forces, moments = at.forces, at.moments
    feet = [body.link_names.index(f"{side}_foot") for side in SIDES]
    poses = body.to(device="casadi").poses(at.q)[:, feet]
    external = np.zeros((len(at.q), len(body.links), 6))
    arms = moments - np.cross(poses[..., :3, 3], forces)
    for part, vectors in ((slice(0, 3), arms), (slice(3, 6), forces)):
        external[:, feet, part] = np.einsum("tfji,tfj->tfi", poses[..., :3, :3], vectors)
    title = f"{who(problem)}, {stride.step.speed:.3g} m/s"
    states = (stride.s * stride.duration, at.q, at.v, at.a, at.torques)
    ground = np.concatenate([pressure(at, body), forces], axis=-1)
    found = Timeline(body, title, *states, body.coordinate_names, external, ground)
    way, things = at.q[-1] - at.q[0], things_of(problem, walk_of(problem)[1])
    repeats = np.abs(np.delete(way, GLOBAL.index("tz"))).max() < REPEAT_TOLERANCE  # the stride ends as it began
    return replace(found, things=things, ahead=way[:3].copy() if repeats else None, movie=partial(animate, stride))
