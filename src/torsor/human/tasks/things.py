"""What a human carries, sits or walks on, as solids for viewers: backpack, box, seat, armrests, stairs."""

from functools import partial

import numpy as np

from torsor.base.scenes import Solid, Thing
from torsor.human.body.coordinates import SIDES
from torsor.human.body.drawing import load_pose, load_size
from torsor.human.body.loads import Backpack, Box
from torsor.human.contact.stairs import Stairs, stairs_of
from torsor.human.contact.support import Rails, Sitting, Support
from torsor.human.terms.problem import grounded_term, load_of
from torsor.motion import MotionProblem
from torsor.robot.robot import Robot
from torsor.spatial import make_pose

BROWN = (0.66, 0.47, 0.29, 1.0)
WOOD = (0.74, 0.74, 0.76, 1.0)
SEAT = (0.45, 0.05, 0.4)  # width, thickness and depth of a seat (m): only its place is known
LEG = 0.035  # edge of the legs of a seat (m)
REST, GRIP = (0.04, 0.25), 0.02  # thickness and length of an armrest, and how far it is below the knuckles (m)
TREADS, WIDTH = range(-2, 5), 0.9  # numbers of the treads that are drawn, and their width (m)


def things_of(problem: MotionProblem, support: Support) -> tuple[Thing, ...]:
    """Return what the body of a problem carries, holds, sits and walks on."""
    body, load = grounded_term(problem).body, load_of(problem)
    stairs, rails = stairs_of(support, body), support.rails
    found = [stair_thing(stairs)] if stairs is not None else []
    found += [rail_thing(rails)] if rails is not None else []
    found += [load_thing(body, load)] if load is not None else []
    return (*found, seat_thing(support)) if isinstance(support, Sitting) else tuple(found)


def load_thing(body: Robot, load: Backpack | Box) -> Thing:
    """Return a load, which moves with the trunk or with both hands of a body."""
    solid = Solid("box", np.eye(4), load_size(load))
    return Thing(type(load).__name__.lower(), load, BROWN, (solid,), partial(load_pose, body, load=load))


def seat_thing(seat: Sitting) -> Thing:
    """Return a seat: a board where it carries the body, and four legs."""
    width, thick, depth = SEAT
    board = Solid("box", make_pose(p=[0.0, seat.height - thick / 2, -seat.back]), np.array(SEAT))
    high = seat.height - thick
    legs = [
        Solid("box", make_pose(p=[x, high / 2, z - seat.back]), np.array([LEG, high, LEG]))
        for x in (-(width - LEG) / 2, (width - LEG) / 2)
        for z in (-(depth - LEG) / 2, (depth - LEG) / 2)
    ]
    return Thing("seat", seat, WOOD, (board, *legs))


def stair_thing(stairs: Stairs) -> Thing:
    """Return the treads of stairs, each a block as high as the rise."""
    size = np.array([WIDTH, abs(stairs.rise), stairs.length])
    places = ([0.0, k * stairs.rise - size[1] / 2, stairs.back + (k + 0.5) * stairs.length] for k in TREADS)
    return Thing("stairs", stairs, WOOD, tuple(Solid("box", make_pose(p=at), size) for at in places))


def rail_thing(rails: Rails) -> Thing:
    """Return two armrests, below the hands."""
    thick, long = REST
    places = (np.array(rails.place(side)) - [0.0, GRIP + thick / 2, long / 2 - 0.05] for side in SIDES)
    solids = tuple(Solid("box", make_pose(p=at), np.array([thick, thick, long])) for at in places)
    return Thing("armrests", rails, WOOD, solids)
