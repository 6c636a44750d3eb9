"""Motion prediction: trajectory optimisation with analytical derivatives.

A ``MotionProblem`` consists of a robot, one or more ``Phase``s, an objective and constraints. ``solve`` returns a
``MotionResult``, or raises a ``MotionError`` that names the conflicting constraints.

- Objectives: Time, Effort, MechanicalEnergy, ElectricalEnergy, TorqueRate, Rates, Jerk, Reaction, Reference,
  Manipulability, ExpressionCost
- End conditions: Start, End, Linked, Periodic, Symmetric
- Bounds: Positions, Velocities, Accelerations, Jerks, Torques, TorqueRates, Powers, Reactions, Unactuated
- Task-space constraints: FramePosition, FrameVelocity, Orientation, Follow, Clearance (of Sphere, Capsule, HalfSpace)
- Constraints on any expression of a ``Node``: ExpressionConstraint
- Profiles: Spline, Path; free parameters of the robot: Number
- Built-in problems: PROBLEMS; files: load_problem; solvers by name: SOLVERS
- Repeated solves: Solver, continuation, pareto, ``MotionProblem.multistart``; bang-bang motions: switching
- Derivatives of optimal motions: ``MotionResult.sensitivity``, sensitivities
- Inverse optimal control: fit_weights, weight_sensitivities, Measured, WeightFit
- Time-optimal timing of a prescribed path: retime, Retimed
- Model predictive control: mpc, PredictiveController, Prediction

Modules import only from modules below them. From top to bottom, they are: problems, sweeps, switching, inverse, solver;
problem (``MotionProblem``, ``MotionResult``); sensitivity, multistart; many, files; processes; solve (the strategies),
refine, diagnosis, starts; results; statement (the data of a problem and its nonlinear program); terms and
transcription.
"""

from typing import TYPE_CHECKING, Any

from torsor.base.errors import MotionError
from torsor.base.registry import subpackages
from torsor.motion.multistart import Multistart
from torsor.motion.predictive import Prediction, PredictiveController, mpc
from torsor.motion.problem import MotionMultistart, MotionProblem, MotionResult, load_problem
from torsor.motion.problems import PROBLEMS
from torsor.motion.results.certificate import Certificate, CertifiedBound
from torsor.motion.results.replay import Replay
from torsor.motion.results.samples import Moments
from torsor.motion.results.solution import Active, Group, Part, Pass
from torsor.motion.retiming.result import Retimed
from torsor.motion.retiming.retime import retime
from torsor.motion.sensitivity import Sensitivities, Sensitivity, sensitivities
from torsor.motion.sequence import MotionSequence, continuation, pareto
from torsor.motion.solver import Solver
from torsor.motion.switching import BangBang, switching
from torsor.motion.terms.distances import Capsule, Clearance, HalfSpace, Sphere
from torsor.motion.terms.ends import End, Linked, Periodic, Start, Symmetric
from torsor.motion.terms.frames import Follow, FramePosition, FrameVelocity, Manipulability, Orientation, Reference
from torsor.motion.terms.limits import (
    Accelerations,
    Jerks,
    Positions,
    Powers,
    Reaction,
    Reactions,
    TorqueRates,
    Torques,
    Unactuated,
    Velocities,
)
from torsor.motion.terms.objectives import Effort, ElectricalEnergy, Jerk, MechanicalEnergy, Rates, Time, TorqueRate
from torsor.motion.terms.term import ExpressionConstraint, ExpressionCost, Number
from torsor.motion.transcription.motion_model import Path
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.phase import Phase
from torsor.motion.transcription.splines import Spline
from torsor.optimisation import SOLVERS

if TYPE_CHECKING:
    from torsor.motion.inverse import Measured, WeightFit, WeightSensitivities, fit_weights, weight_sensitivities

__all__ = [
    "PROBLEMS", "SOLVERS", "Accelerations", "Active", "BangBang", "Capsule", "Certificate", "CertifiedBound",
    "Clearance", "Effort", "ElectricalEnergy", "End", "ExpressionConstraint", "ExpressionCost", "Follow",
    "FramePosition", "FrameVelocity", "Group", "HalfSpace", "Jerk", "Jerks", "Linked", "Manipulability", "Measured",
    "MechanicalEnergy", "Moments", "MotionError", "MotionMultistart", "MotionProblem", "MotionResult", "MotionSequence",
    "Multistart", "Node", "Number", "Orientation", "Part", "Pass", "Path", "Periodic", "Phase", "Positions", "Powers",
    "Prediction", "PredictiveController", "Rates", "Reaction", "Reactions", "Reference", "Replay", "Retimed",
    "Sensitivities", "Sensitivity", "Solver", "Sphere", "Spline", "Start", "Symmetric", "Time", "TorqueRate",
    "TorqueRates", "Torques", "Unactuated", "Velocities", "WeightFit", "WeightSensitivities", "continuation",
    "fit_weights", "load_problem", "mpc", "pareto", "retime", "sensitivities", "switching", "weight_sensitivities",
]  # fmt: skip

_subpackage = subpackages(__name__, "inverse", "sweeps")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        return _subpackage(name)
    return getattr(_subpackage("inverse"), name)  # imported on first use, because few users fit weights
