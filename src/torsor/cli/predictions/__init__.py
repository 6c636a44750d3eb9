"""The motions that ``torsor predict`` finds by name, each with its own options and its own report."""

from torsor.cli.predictions.built_in import BUILT_IN
from torsor.cli.predictions.prediction import Prediction
from torsor.cli.predictions.run import RUN
from torsor.cli.predictions.tasks import LIFT, PULL, PUSH, REACH, SIT_DOWN, STAND_UP
from torsor.cli.predictions.walk import WALK

__all__ = ["NAMED"]

_HUMAN = (WALK, RUN, LIFT, PUSH, PULL, REACH, STAND_UP, SIT_DOWN)
NAMED: dict[str, Prediction] = BUILT_IN | {each.name: each for each in _HUMAN}
