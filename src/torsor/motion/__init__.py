"""Motion prediction: trajectories by optimisation with analytical derivatives."""

from torsor.motion.constraints import Active, Group
from torsor.motion.ends import End, Linked, Periodic, Start, Symmetric
from torsor.motion.failure import MotionError
from torsor.motion.files import load_problem
from torsor.motion.limits import Torques, Velocities
from torsor.motion.objectives import Effort, Time
from torsor.motion.paths import Path
from torsor.motion.phase import Phase
from torsor.motion.problem import MotionProblem
from torsor.motion.replay import Replay
from torsor.motion.result import MotionResult, Part, Pass
from torsor.motion.samples import Moments
from torsor.motion.solvers import SOLVERS
from torsor.motion.splines import Spline
from torsor.motion.sweeps import Multistart, continuation, pareto

__all__ = [
    "SOLVERS",
    "Active",
    "Effort",
    "End",
    "Group",
    "Linked",
    "Moments",
    "MotionError",
    "MotionProblem",
    "MotionResult",
    "Multistart",
    "Part",
    "Pass",
    "Path",
    "Periodic",
    "Phase",
    "Replay",
    "Spline",
    "Start",
    "Symmetric",
    "Time",
    "Torques",
    "Velocities",
    "continuation",
    "load_problem",
    "pareto",
]
