"""Torsor: exact dynamics of robots and of the human body, by recursive Newton-Euler algorithms.

Examples in docstrings assume ``import numpy as np`` and ``import torsor``. Public names are imported when they are
first used, so that ``import torsor`` is cheap and a program loads only the packages that it needs.

>>> import torsor
>>> robot = torsor.library.stanford()
>>> robot.inverse_dynamics(robot.neutral(), [0.0] * 6, [0.0] * 6).shape
(6,)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# The first import handles Ctrl-C in the command while the others load.
import torsor.base.startup  # noqa: F401
from torsor._version import __version__
from torsor.base.registry import declare

if TYPE_CHECKING:
    from torsor import (
        control,
        export,
        formats,
        geometry,
        human,
        identification,
        library,
        mechanism,
        motion,
        robot,
        simulation,
        spatial,
        view,
    )
    from torsor.base.archive import load_result
    from torsor.base.errors import ModelError, ModelWarning, MotionError, SimulationError
    from torsor.compiler import cache, compile
    from torsor.formats import DHLink, MDHLink
    from torsor.identification.identify import identify
    from torsor.mechanism import Coupling, Frame, Joint, Link, Loop, Motor, Shape, Spring, Visual, Wheel
    from torsor.motion import MotionProblem, MotionResult
    from torsor.motion.sweeps.sweep import sweep
    from torsor.robot.closed_loops import AssemblyError, Mobility
    from torsor.robot.inverse_kinematics import analytic_inverse_kinematics, inverse_kinematics
    from torsor.robot.load import build, from_dh, from_mdh, from_screws, load
    from torsor.robot.parallel import Leg, ParallelRobot
    from torsor.robot.parametric import Parametric
    from torsor.robot.robot import Robot
    from torsor.simulation import Trajectory
    from torsor.simulation.simulate import simulate
    from torsor.view import show

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
    "analytic_inverse_kinematics",
    "build",
    "cache",
    "compile",
    "control",
    "export",
    "formats",
    "from_dh",
    "from_mdh",
    "from_screws",
    "geometry",
    "human",
    "identification",
    "identify",
    "inverse_kinematics",
    "library",
    "load",
    "load_result",
    "mechanism",
    "motion",
    "robot",
    "show",
    "simulate",
    "simulation",
    "spatial",
    "sweep",
    "view",
]

# The module of each public name that is not a subpackage.
_MODULES = {
    "torsor.base.archive": ("load_result",),
    "torsor.base.errors": ("ModelError", "ModelWarning", "MotionError", "SimulationError"),
    "torsor.compiler": ("cache", "compile"),
    "torsor.formats": ("DHLink", "MDHLink"),
    "torsor.identification": ("identify",),
    "torsor.mechanism": (
        *("Coupling", "Frame", "Joint", "Link", "Loop", "Motor", "Shape", "Spring", "Visual", "Wheel"),
    ),
    "torsor.motion": ("MotionProblem", "MotionResult"),
    "torsor.motion.sweeps": ("sweep",),
    "torsor.robot.closed_loops": ("AssemblyError", "Mobility"),
    "torsor.robot.inverse_kinematics": ("analytic_inverse_kinematics", "inverse_kinematics"),
    "torsor.robot.load": ("build", "from_dh", "from_mdh", "from_screws", "load"),
    "torsor.robot.parallel": ("Leg", "ParallelRobot"),
    "torsor.robot.parametric": ("Parametric",),
    "torsor.robot.robot": ("Robot",),
    "torsor.simulation": ("Trajectory", "simulate"),
    "torsor.view": ("show",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

# Packages that register names for others: result kinds, problems, problem-file encodings, 3D pages, references, robots.
_REGISTERED: dict[str, dict[str, tuple[str, ...]]] = {
    "result": {
        "torsor.simulation": ("trajectory", "rollout"),
        "torsor.motion": ("motion", "multistart", "sequence", "retimed"),
        "torsor.motion.inverse": ("weights",),
        "torsor.human": ("near_optimal_walks", "stride"),
        "torsor.human.measured": ("measured_gait",),
        "torsor.identification": ("identification", "excitation"),
        "torsor.robot.parallel": ("workspace",),
    },
    "problem": {
        "torsor.human.problems": ("walk", "run", "lift", "push", "pull", "reach", "stand-up", "sit-down"),
    },
    "encoding": {
        "torsor.human": ("human",),
        "torsor.human.measured": ("measured",),
        "torsor.motion.inverse": ("inverse",),
    },
    "page": {"torsor.view": ("html",)},
    "walk references": {"torsor.human": ("of any form",)},
    "robots": {"torsor.library": ("library",)},
}
for _group, _homes in _REGISTERED.items():
    declare(_group, {name: module for module, names in _homes.items() for name in names})


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
    if name in __all__:
        return import_module(f"torsor.{name}")
    raise AttributeError(f"module 'torsor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
