"""The human body in motion: ground contact, balance, and prediction of walking and other tasks."""

import torsor.human.encoding  # registers classes for files
import torsor.human.gait.timelines  # noqa: F401  registers the timelines of walks and tasks
from torsor.base.registry import subpackages
from torsor.human.body.drawing import draw
from torsor.human.body.fatigue import Fatigue, JointLoads
from torsor.human.body.loads import Backpack, Box, HandForces, hand_wrenches
from torsor.human.body.percentiles import size_of_percentile
from torsor.human.body.person import Person, described_person, person_of, segment_lengths, with_lengths
from torsor.human.body.strength import (
    Curve,
    JointStrength,
    StrengthCurves,
    joint_strength,
    passive_torques,
    with_strength,
)
from torsor.human.body.trunk_strength import TrunkStrength
from torsor.human.body.work_shift import WorkShift
from torsor.human.cohort import Cohort, cohort
from torsor.human.comparison.recorded import RecordedWalk, recorded_walk
from torsor.human.comparison.table import CurveLikeness, LikenessTable
from torsor.human.contact.contact_forces import GroundReaction, ground_reaction
from torsor.human.contact.schedule import Step, Walk, froude_number, leg_length, similar_step, walking_limit
from torsor.human.contact.support import Carried, Foot, Rails, Sitting, Stance, Standing, Support
from torsor.human.gait.curves import CurveSpread, Energy, QuantitySpread
from torsor.human.gait.figures import animate
from torsor.human.gait.near_optimal import NearOptimalWalks, near_optimal_walks
from torsor.human.gait.opensim import OpensimFiles, ground_forces, opensim_moments, opensim_motion, write_opensim
from torsor.human.gait.references import REFERENCES, Likeness, Reference, likeness
from torsor.human.gait.stride import Stride, fatigued, joint_loads
from torsor.human.gait.walking import bent_start, running, walking
from torsor.human.tasks import TASKS, lifting, pulling, pushing, reaching, sitting_down, standing_up
from torsor.human.tasks.figures import plot_task
from torsor.human.tasks.task import LargestLift, Weakness, largest_lift, weaknesses
from torsor.human.terms.habits import Habits
from torsor.human.terms.problem import joint_torques

__all__ = [
    "REFERENCES", "TASKS", "Backpack", "Box", "Carried", "Cohort", "Curve", "CurveLikeness", "CurveSpread", "Energy",
    "Fatigue", "Foot", "GroundReaction", "Habits", "HandForces", "JointLoads", "JointStrength", "LargestLift",
    "Likeness", "LikenessTable", "NearOptimalWalks", "OpensimFiles", "Person", "QuantitySpread", "Rails",
    "RecordedWalk", "Reference", "Sitting", "Stance", "Standing", "Step", "StrengthCurves", "Stride", "Support",
    "TrunkStrength", "Walk", "Weakness", "WorkShift", "animate", "bent_start", "cohort", "described_person", "draw",
    "fatigued", "froude_number", "ground_forces", "ground_reaction", "hand_wrenches", "joint_loads", "joint_strength",
    "joint_torques", "largest_lift", "leg_length", "lifting", "likeness", "near_optimal_walks", "opensim_moments",
    "opensim_motion", "passive_torques", "person_of", "plot_task", "pulling",
    "pushing", "reaching", "recorded_walk", "running", "segment_lengths", "similar_step", "sitting_down",
    "size_of_percentile", "standing_up", "walking", "walking_limit", "weaknesses", "with_lengths", "with_strength",
    "write_opensim",
]  # fmt: skip

__getattr__ = subpackages(__name__, "ergonomics", "measured", "recordings")
