"""The motions that ``torsor predict`` finds by name, each with its own options and its own report."""

from torsor.cli.predictions.prediction import Prediction
from torsor.cli.predictions.tasks import ON_FLAT_FEET
from torsor.cli.predictions.walk import RUN, WALK
from torsor.motion import PROBLEMS

__all__ = ["NAMED"]

NAMED: dict[str, Prediction] = {name: Prediction.of(each) for name, each in PROBLEMS.items()}
NAMED |= {"walk": WALK, "run": RUN} | ON_FLAT_FEET
