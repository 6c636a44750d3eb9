"""The human body in motion: contacts with the ground, balance, and walking and other tasks that are predicted."""

from torsor.human.balance import GroundReaction, ground_reaction
from torsor.human.drawing import animate, draw
from torsor.human.energy import Energy
from torsor.human.fatigue import Fatigue, JointLoads, fatigued, joint_loads
from torsor.human.figures import plot_task
from torsor.human.gait import joint_torques
from torsor.human.habits import Habits
from torsor.human.loads import Backpack, Box
from torsor.human.references import REFERENCES, Likeness, Reference, likeness
from torsor.human.schedule import Step, Walk
from torsor.human.starts import bent_start
from torsor.human.strength import Curve, JointStrength, StrengthCurves, joint_strength
from torsor.human.stride import Stride
from torsor.human.support import Carried, Foot, Sitting, Stance, Standing, Support
from torsor.human.tasks import TASKS, lifting, reaching, standing_up
from torsor.human.walking import walking

__all__ = [
    "REFERENCES",
    "TASKS",
    "Backpack",
    "Box",
    "Carried",
    "Curve",
    "Energy",
    "Fatigue",
    "Foot",
    "GroundReaction",
    "Habits",
    "JointLoads",
    "JointStrength",
    "Likeness",
    "Reference",
    "Sitting",
    "Stance",
    "Standing",
    "Step",
    "StrengthCurves",
    "Stride",
    "Support",
    "Walk",
    "animate",
    "bent_start",
    "draw",
    "fatigued",
    "ground_reaction",
    "joint_loads",
    "joint_strength",
    "joint_torques",
    "lifting",
    "likeness",
    "plot_task",
    "reaching",
    "standing_up",
    "walking",
]
