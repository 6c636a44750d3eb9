"""Torsor: exact dynamics of robots, by the recursive Newton-Euler family.

>>> import torsor
>>> robot = torsor.library.stanford()
>>> robot.inverse_dynamics(robot.neutral(), [0.0] * 6, [0.0] * 6).shape
(6,)
"""

from torsor import autodiff, control, human, identification, library, motion, parallel, spatial
from torsor.compiler import cache, compile
from torsor.errors import ModelError, ModelWarning
from torsor.formats import DHLink, MDHLink
from torsor.identification import identify
from torsor.mechanism import Coupling, Frame, Joint, Link, Loop, Motor, Spring, Visual
from torsor.motion import MotionError, MotionProblem, MotionResult
from torsor.parallel import Leg, ParallelRobot
from torsor.robot.closed_loops import AssemblyError, Mobility
from torsor.robot.load import assemble, from_dh, from_mdh, from_screws, load
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot
from torsor.simulation import SimulationError, Trajectory, simulate

__version__ = "0.1.0"

__all__ = [
    "AssemblyError",
    "Coupling",
    "DHLink",
    "Frame",
    "Joint",
    "Leg",
    "Link",
    "Loop",
    "MDHLink",
    "Mobility",
    "ModelError",
    "ModelWarning",
    "MotionError",
    "MotionProblem",
    "MotionResult",
    "Motor",
    "ParallelRobot",
    "Parametric",
    "Robot",
    "SimulationError",
    "Spring",
    "Trajectory",
    "Visual",
    "__version__",
    "assemble",
    "autodiff",
    "cache",
    "compile",
    "control",
    "from_dh",
    "from_mdh",
    "from_screws",
    "human",
    "identification",
    "identify",
    "library",
    "load",
    "motion",
    "parallel",
    "simulate",
    "spatial",
]
