"""Online trajectory scaling: timing of paths within torque and torque-rate bounds."""
