"""Old place of input validation, which is in ``torsor.checks`` now, and of ``Part``."""

from torsor.checks import frozen_array, frozen_pose
from torsor.checks import name_of as checked_name
from torsor.mechanism.part import Part

__all__ = ["Part", "checked_name", "frozen_array", "frozen_pose"]
