"""What a human carries, sits or walks on: the backpack, the box between the hands, the seat, stairs."""

from dataclasses import dataclass

import numpy as np

from torsor.base.arrays import Array
from torsor.human import Backpack, Box, Rails, Sitting
from torsor.human.body.coordinates import SIDES
from torsor.human.body.drawing import load_pose, load_size
from torsor.human.contact.stairs import Stairs
from torsor.robot.robot import Robot
from torsor.spatial import make_pose
from torsor.view.scene.solids import Solid

Thing = Backpack | Box | Sitting | Stairs | Rails
FIXED = (Sitting, Stairs, Rails)  # things that do not move with the body
BROWN = (0.66, 0.47, 0.29, 1.0)
WOOD = (0.74, 0.74, 0.76, 1.0)
SEAT = (0.45, 0.05, 0.4)  # width, thickness and depth of a seat (m): only its place is known
LEG = 0.035  # edge of the legs of a seat (m)
REST, GRIP = (0.04, 0.25), 0.02  # thickness and length of an armrest, and how far it is below the knuckles (m)
TREADS, WIDE = range(-2, 5), 0.9  # numbers of the treads that are drawn, and their width (m)


@dataclass(frozen=True, eq=False)
class Carried:
    """A load of a body: one place, which moves with the trunk or with both hands."""

    body: Robot
    load: Backpack | Box
    count = 1

    def poses(self, links: Array, q: Array) -> Array:
        """Return the pose (..., 1, 4, 4) of the load in base axes; ``links`` (..., L + 1, 4, 4) has the base first."""
        return load_pose(self.body, links[..., 1:, :, :], self.load)[..., None, :, :]

    def solid(self) -> Solid:
        """Return the load in its own axes."""
        return Solid("box", np.eye(4), load_size(self.load))


def seat_solids(seat: Sitting) -> tuple[Solid, ...]:
    """Return a seat in base axes: a board where it carries the body, and four legs.

    Example:
        >>> board, *legs = seat_solids(Sitting(height=0.45))
        >>> float(board.surface.vertices[:, 1].max()), len(legs)
        (0.45, 4)
    """
    width, thick, depth = SEAT
    board = Solid("box", make_pose(p=[0.0, seat.height - thick / 2, -seat.back]), np.array(SEAT))
    high = seat.height - thick
    legs = [
        Solid("box", make_pose(p=[x, high / 2, z - seat.back]), np.array([LEG, high, LEG]))
        for x in (-(width - LEG) / 2, (width - LEG) / 2)
        for z in (-(depth - LEG) / 2, (depth - LEG) / 2)
    ]
    return board, *legs


def stair_solids(stairs: Stairs) -> tuple[Solid, ...]:
    """Return the treads of stairs in base axes, each a block as high as the rise.

    Example:
        >>> blocks = stair_solids(Stairs(0.0, 0.3, 0.2))
        >>> [round(float(each.surface.vertices[:, 1].max()), 9) for each in blocks[:3]]
        [-0.4, -0.2, 0.0]
    """
    size = np.array([WIDE, abs(stairs.rise), stairs.length])
    return tuple(
        Solid("box", make_pose(p=[0.0, k * stairs.rise - size[1] / 2, stairs.back + (k + 0.5) * stairs.length]), size)
        for k in TREADS
    )


def rail_solids(rails: Rails) -> tuple[Solid, ...]:
    """Return two armrests in base axes, below the hands.

    Example:
        >>> [round(float(each.surface.vertices[:, 1].max()), 9) for each in rail_solids(Rails(height=0.6))]
        [0.58, 0.58]
    """
    thick, long = REST
    places = (np.array(rails.place(side)) - [0.0, GRIP + thick / 2, long / 2 - 0.05] for side in SIDES)
    return tuple(Solid("box", make_pose(p=at), np.array([thick, thick, long])) for at in places)


def fixed_solids(thing: Sitting | Stairs | Rails) -> tuple[str, tuple[Solid, ...]]:
    """Return the name and the solids of a thing that does not move.

    Example:
        >>> fixed_solids(Sitting())[0]
        'seat'
    """
    if isinstance(thing, Rails):
        return "armrests", rail_solids(thing)
    return ("seat", seat_solids(thing)) if isinstance(thing, Sitting) else ("stairs", stair_solids(thing))
