"""The human body in motion: contacts with the ground, balance, and walking and other tasks that are predicted."""

from torsor.human.body.fatigue import Fatigue, JointLoads, fatigued, joint_loads
from torsor.human.body.loads import Backpack, Box
from torsor.human.body.strength import Curve, JointStrength, StrengthCurves, joint_strength
from torsor.human.contact.balance import GroundReaction, ground_reaction
from torsor.human.contact.ground_contact import joint_torques
from torsor.human.contact.schedule import Step, Walk
from torsor.human.contact.support import Carried, Foot, Sitting, Stance, Standing, Support
from torsor.human.gait.drawing import animate, draw
from torsor.human.gait.energy import Energy
from torsor.human.gait.figures import plot_task
from torsor.human.gait.references import REFERENCES, Likeness, Reference, likeness
from torsor.human.gait.stride import Stride
from torsor.human.gait.walking import walking
from torsor.human.tasks.starts import bent_start
from torsor.human.tasks.tasks import TASKS, lifting, reaching, standing_up
from torsor.human.terms.habits import Habits

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
