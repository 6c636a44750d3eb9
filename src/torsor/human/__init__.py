"""The human body in motion: contacts with the ground, balance, and walking that is predicted."""

from torsor.human.balance import GroundReaction, ground_reaction
from torsor.human.schedule import Stance, Step
from torsor.human.stride import Stride
from torsor.human.walking import walking

__all__ = ["GroundReaction", "Stance", "Step", "Stride", "ground_reaction", "walking"]
