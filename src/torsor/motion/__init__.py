"""Motion prediction: trajectories by optimisation with analytical derivatives."""

from torsor.motion.ends import End, Linked, Periodic, Start, Symmetric
from torsor.motion.limits import Torques, Velocities
from torsor.motion.objectives import Effort, Time
from torsor.motion.paths import Path
from torsor.motion.phase import Phase
from torsor.motion.problem import MotionProblem
from torsor.motion.splines import Spline
from torsor.motion.switching import BangBang, switching

__all__ = [
    "BangBang",
    "Effort",
    "End",
    "Linked",
    "MotionProblem",
    "Path",
    "Periodic",
    "Phase",
    "Spline",
    "Start",
    "Symmetric",
    "Time",
    "Torques",
    "Velocities",
    "switching",
]
