"""The motions of a human that ``torsor predict`` finds, each with its own options and its own report."""

from torsor.cli.predictions.prediction import Prediction
from torsor.cli.predictions.tasks import LIFT, REACH, STAND_UP
from torsor.cli.predictions.walk import WALK

__all__ = ["HUMAN"]

HUMAN: dict[str, Prediction] = {each.name: each for each in (WALK, LIFT, STAND_UP, REACH)}
