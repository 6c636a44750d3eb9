"""Torsor: exact dynamics of robots, by the recursive Newton-Euler family.

Examples in docstrings assume ``import numpy as np`` and ``import torsor``.

>>> import torsor
>>> robot = torsor.library.stanford()
>>> robot.inverse_dynamics(robot.neutral(), [0.0] * 6, [0.0] * 6).shape
(6,)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# The first of them handles Ctrl-C of the command while the others are imported.
import torsor.base.startup  # noqa: F401
from torsor import spatial
from torsor.base.deprecation import renamed_names
from torsor.base.errors import ModelError, ModelWarning
from torsor.compiler import cache, compile
from torsor.formats import DHLink, MDHLink
from torsor.mechanism import Coupling, Frame, Joint, Link, Loop, Motor, Shape, Spring, Visual, Wheel
from torsor.robot.closed_loops import AssemblyError, Mobility
from torsor.robot.load import build, from_dh, from_mdh, from_screws, load
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot

if TYPE_CHECKING:
    from torsor import control, geometry, human, identification, library, motion, results
    from torsor.base.archive import load_result
    from torsor.human import recordings
    from torsor.identification.identify import identify
    from torsor.mechanism import flexible_links
    from torsor.motion import MotionError, MotionProblem, MotionResult, sweeps
    from torsor.motion.sweeps.sweep import sweep
    from torsor.robot import autodiff, inverse_kinematics, parallel
    from torsor.robot.parallel import Leg, ParallelRobot
    from torsor.simulation import SimulationError, Trajectory
    from torsor.simulation.simulate import simulate

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
    "Shape",
    "SimulationError",
    "Spring",
    "Trajectory",
    "Visual",
    "Wheel",
    "__version__",
    "autodiff",
    "build",
    "cache",
    "collision",
    "compile",
    "control",
    "flexible",
    "from_dh",
    "from_mdh",
    "from_screws",
    "human",
    "identification",
    "identify",
    "kinematics",
    "library",
    "load",
    "load_result",
    "motion",
    "parallel",
    "recordings",
    "results",
    "simulate",
    "spatial",
    "studies",
    "sweep",
]

# Packages, and names of packages, that are imported when they are first used: the dynamics of a robot needs none.
_PACKAGES = (
    "autodiff",
    "collision",
    "control",
    "flexible",
    "human",
    "identification",
    "kinematics",
    "library",
    "motion",
    "parallel",
    "recordings",
    "results",
    "simulation",
    "studies",
)
_HOMES = {
    "identify": "identification",
    "load_result": "results",
    "MotionError": "motion",
    "MotionProblem": "motion",
    "MotionResult": "motion",
    "Leg": "parallel",
    "ParallelRobot": "parallel",
    "SimulationError": "simulation",
    "Trajectory": "simulation",
    "simulate": "simulation",
    "sweep": "studies",
}
_renamed = renamed_names(__name__, {"assemble": ("torsor.build", build)})


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"torsor.{name}")
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(f"torsor.{_HOMES[name]}"), name)
        return value
    return _renamed(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
