"""Motion prediction: trajectories by optimisation with analytical derivatives.

A ``MotionProblem`` has a robot, one or more ``Phase``s, an objective and constraints; ``solve`` returns a
``MotionResult``, or raises a ``MotionError`` that names the constraints in conflict.

Objectives: Time, Effort, MechanicalEnergy, ElectricalEnergy, TorqueRate, Rates, Jerk, Reaction, Reference,
Manipulability, ExpressionCost. At the ends: Start, End, Linked, Periodic, Symmetric. Bounds: Positions, Velocities,
Accelerations, Jerks, Torques, TorqueRates, Powers, Reactions, Unactuated. In space: FramePosition, FrameVelocity,
Orientation, Follow, Clearance of Sphere, Capsule and HalfSpace. Any expression of a ``Node``: ExpressionConstraint.

Profiles: Spline, Path; free numbers of the robot: Number. Built-in problems: PROBLEMS. Files: load_problem. Several
solves: continuation, pareto, ``MotionProblem.multistart``. Bang-bang motions: switching. Solvers by name: SOLVERS.

Files import downwards only, from the top: problems, sweeps, switching; problem (``MotionProblem``, ``MotionResult``);
multistart, files, writing; solve (the strategies), refine, diagnosis, starts, settings; results; statement (the data of
a problem and its nonlinear program); terms and transcription.
"""

from torsor.deprecation import renamed_names
from torsor.motion.multistart import Multistart
from torsor.motion.problem import MotionError, MotionMultistart, MotionProblem, MotionResult, load_problem
from torsor.motion.problems import PROBLEMS
from torsor.motion.results.constraints import Active, Group
from torsor.motion.results.replay import Replay
from torsor.motion.results.samples import Moments
from torsor.motion.results.solution import Part, Pass
from torsor.motion.sequence import MotionSequence
from torsor.motion.sweeps import continuation, pareto
from torsor.motion.switching import BangBang, switching
from torsor.motion.terms.distances import Capsule, Clearance, HalfSpace, Sphere
from torsor.motion.terms.ends import End, Linked, Periodic, Start, Symmetric
from torsor.motion.terms.expressions import ExpressionConstraint, ExpressionCost
from torsor.motion.terms.frames import FramePosition, FrameVelocity, Orientation
from torsor.motion.terms.limits import (
    Accelerations,
    Jerks,
    Positions,
    Powers,
    TorqueRates,
    Torques,
    Unactuated,
    Velocities,
)
from torsor.motion.terms.objectives import Effort, ElectricalEnergy, Jerk, MechanicalEnergy, Rates, Time, TorqueRate
from torsor.motion.terms.reactions import Reaction, Reactions
from torsor.motion.terms.references import Follow, Manipulability, Reference
from torsor.motion.terms.term import Number
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.paths import Path
from torsor.motion.transcription.phase import Phase
from torsor.motion.transcription.splines import Spline
from torsor.optimisation import SOLVERS

__all__ = [
    "PROBLEMS",
    "SOLVERS",
    "Accelerations",
    "Active",
    "BangBang",
    "Capsule",
    "Clearance",
    "Effort",
    "ElectricalEnergy",
    "End",
    "ExpressionConstraint",
    "ExpressionCost",
    "Follow",
    "FramePosition",
    "FrameVelocity",
    "Group",
    "HalfSpace",
    "Jerk",
    "Jerks",
    "Linked",
    "Manipulability",
    "MechanicalEnergy",
    "Moments",
    "MotionError",
    "MotionMultistart",
    "MotionProblem",
    "MotionResult",
    "MotionSequence",
    "Multistart",
    "Node",
    "Number",
    "Orientation",
    "Part",
    "Pass",
    "Path",
    "Periodic",
    "Phase",
    "Positions",
    "Powers",
    "Rates",
    "Reaction",
    "Reactions",
    "Reference",
    "Replay",
    "Sphere",
    "Spline",
    "Start",
    "Symmetric",
    "Time",
    "TorqueRate",
    "TorqueRates",
    "Torques",
    "Unactuated",
    "Velocities",
    "continuation",
    "load_problem",
    "pareto",
    "switching",
]

__getattr__ = renamed_names(__name__, {"ExpressionRows": ("motion.ExpressionConstraint", ExpressionConstraint)})
