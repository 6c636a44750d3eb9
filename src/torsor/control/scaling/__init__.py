"""Online trajectory scaling: path timing within torque and torque-rate bounds."""
