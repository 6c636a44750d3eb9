"""Human motions for viewers: walks and tasks with ground forces and loads."""

from dataclasses import replace
from functools import partial

import numpy as np

from torsor.base.scenes import Solid, Thing
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.body.drawing import load_pose, load_size
from torsor.human.body.loads import Backpack, Box
from torsor.human.contact.schedule import Walk, stairs_of
from torsor.human.contact.support import Sitting, Support
from torsor.human.gait.curves import StrideCurves
from torsor.human.gait.figures import animate
from torsor.human.terms.forces import Grounded
from torsor.human.terms.problem import HumanProblem, grounded_term, load_of, presses, pressure, sampled, walk_of, who
from torsor.motion import MotionProblem, MotionResult
from torsor.motion.problem import timeline_of_term
from torsor.robot.robot import Robot
from torsor.simulation.timeline import Timeline, timeline_of
from torsor.spatial import make_pose

REPEAT_TOLERANCE = 1e-3  # largest difference (rad, m) between the ends of a repeating motion


@timeline_of_term.register
def _(term: Grounded, result: MotionResult) -> Timeline:
    """Return a walk as its stride, and a flat-footed task with the ground and seat forces."""
    if isinstance(term.support, Walk):
        return replace(timeline_of(StrideCurves(result)), movie=partial(animate, result))
    body, problem, s = term.body, result.problem, result.times / result.T
    at, tau, external = sampled(result, s), None, None
    if isinstance(problem, HumanProblem):
        tau, external = problem.contact(result)
    states, ground = (result.times, at.q, at.v, at.a), presses(result, s)
    title = f"{who(problem)}: {problem.name}"
    timeline = Timeline(body, title, *states, tau, body.coordinate_names, external, ground)
    things = things_of(problem, term.support)
    return replace(timeline, things=things, movie=partial(animate, result), rotation_title="angle")


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
    timeline = Timeline(body, title, *states, body.coordinate_names, external, ground, SIDES)
    way, things = at.q[-1] - at.q[0], things_of(problem, walk_of(problem)[1])
    repeats = np.abs(np.delete(way, GLOBAL.index("tz"))).max() < REPEAT_TOLERANCE  # the stride ends as it began
    ahead, movie = way[:3].copy() if repeats else None, partial(animate, stride)
    return replace(timeline, things=things, ahead=ahead, movie=movie, rotation_title="angle", stride=stride.side)


# Objects that a human carries, sits on or walks on, as solids for viewers: backpack, box, seat, armrests, stairs.

BROWN = (0.66, 0.47, 0.29, 1.0)
WOOD = (0.74, 0.74, 0.76, 1.0)
SEAT = (0.45, 0.05, 0.4)  # width, thickness and depth of a seat (m); only its position is part of the model
LEG = 0.035  # edge length of the seat legs (m)
REST, GRIP = (0.04, 0.25), 0.02  # thickness and length of an armrest, and its distance below the knuckles (m)
TREADS, WIDTH = range(-2, 5), 0.9  # numbers of the drawn treads, and their width (m)


def things_of(problem: MotionProblem, support: Support) -> tuple[Thing, ...]:
    """Return the objects that the body of a problem carries, holds, sits on or walks on."""
    body, load, things = grounded_term(problem).body, load_of(problem), list[Thing]()
    stairs, rails = stairs_of(support, body), support.rails
    if stairs is not None:  # each tread is a block as high as the rise
        size = np.array([WIDTH, abs(stairs.rise), stairs.length])
        treads = ([0.0, k * stairs.rise - size[1] / 2, stairs.back + (k + 0.5) * stairs.length] for k in TREADS)
        things.append(Thing("stairs", stairs, WOOD, tuple(Solid("box", make_pose(p=at), size) for at in treads)))
    if rails is not None:
        thick, long = REST
        size, below = np.array([thick, thick, long]), np.array([0.0, GRIP + thick / 2, long / 2 - 0.05])
        rests = (Solid("box", make_pose(p=np.array(rails.place(side)) - below), size) for side in SIDES)
        things.append(Thing("armrests", rails, WOOD, tuple(rests)))
    if load is not None:
        things.append(load_thing(body, load))
    return (*things, seat_thing(support)) if isinstance(support, Sitting) else tuple(things)


def load_thing(body: Robot, load: Backpack | Box) -> Thing:
    """Return a load, which moves with the trunk or with both hands of a body."""
    solid = Solid("box", np.eye(4), load_size(load))
    return Thing(type(load).__name__.lower(), load, BROWN, (solid,), partial(load_pose, body, load=load))


def seat_thing(seat: Sitting) -> Thing:
    """Return a seat: a board where the body sits, and four legs."""
    width, thick, depth = SEAT
    board = Solid("box", make_pose(p=[0.0, seat.height - thick / 2, -seat.back]), np.array(SEAT))
    high = seat.height - thick
    legs = [
        Solid("box", make_pose(p=[x, high / 2, z - seat.back]), np.array([LEG, high, LEG]))
        for x in (-(width - LEG) / 2, (width - LEG) / 2)
        for z in (-(depth - LEG) / 2, (depth - LEG) / 2)
    ]
    return Thing("seat", seat, WOOD, (board, *legs))
