"""The human body in motion: contacts with the ground, balance, and walking and other tasks that are predicted."""

from torsor.human.balance import GroundReaction, ground_reaction
from torsor.human.habits import Habits
from torsor.human.loads import Backpack, Box
from torsor.human.schedule import Step, Walk
from torsor.human.stride import Stride
from torsor.human.support import Carried, Foot, Sitting, Stance, Standing, Support
from torsor.human.tasks import TASKS, lifting, reaching, standing_up
from torsor.human.torques import joint_torques
from torsor.human.walking import walking

__all__ = [
    "TASKS",
    "Backpack",
    "Box",
    "Carried",
    "Foot",
    "GroundReaction",
    "Habits",
    "Sitting",
    "Stance",
    "Standing",
    "Step",
    "Stride",
    "Support",
    "Walk",
    "ground_reaction",
    "joint_torques",
    "lifting",
    "reaching",
    "standing_up",
    "walking",
]
