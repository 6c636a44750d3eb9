"""Online trajectory scaling: the timing of a path within torque and torque-rate bounds."""
