"""Online trajectory scaling: the timing of a path within torque and torque-rate bounds."""

from torsor.control.scaling.online import OnlineScaling, Timing

__all__ = ["OnlineScaling", "Timing"]
