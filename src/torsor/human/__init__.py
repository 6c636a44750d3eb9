"""The human body in motion: contacts with the ground, balance, and walking that is predicted."""

from torsor.human.balance import GroundReaction, ground_reaction
from torsor.human.drawing import animate, draw
from torsor.human.energy import Energy
from torsor.human.habits import Habits
from torsor.human.loads import Backpack, Box
from torsor.human.references import REFERENCES, Likeness, Reference, likeness
from torsor.human.schedule import Step, Walk
from torsor.human.starts import bent_start
from torsor.human.stride import Stride
from torsor.human.support import Carried, Foot, Stance, Standing, Support
from torsor.human.walking import walking

__all__ = [
    "REFERENCES",
    "Backpack",
    "Box",
    "Carried",
    "Energy",
    "Foot",
    "GroundReaction",
    "Habits",
    "Likeness",
    "Reference",
    "Stance",
    "Standing",
    "Step",
    "Stride",
    "Support",
    "Walk",
    "animate",
    "bent_start",
    "draw",
    "ground_reaction",
    "likeness",
    "walking",
]
