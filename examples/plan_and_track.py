"""Plan a motion of a Panda around a ball, retime it, track it by computed torque, and print the tracking error."""

import numpy as np

import torsor
from torsor import motion

arm = torsor.library.panda()
home, away = [0.0, -0.5, 0.0, -2.2, 0.0, 1.7, 0.8], [1.2, -0.3, -0.4, -1.8, 0.5, 2.0, 1.2]
ball, hand = motion.Sphere(radius=0.1, center=[0.42, 0.18, 0.5]), motion.Sphere(radius=0.05, link="panda_hand_tcp")
terms = [motion.Start(q=home, v=0.0), motion.End(q=away, v=0.0), motion.Clearance(first=hand, second=ball)]

plan = torsor.MotionProblem(arm, motion.Phase(1.0), motion.Jerk(), terms).solve()
timed = motion.retime(arm, plan)
law = torsor.control.computed_torque(arm, timed, bandwidth=30.0)
run = torsor.simulate(arm, timed.q[0], duration=timed.duration, controller=law)

error = 1e3 * (timed.at(run.times).q - run.q)
print(f"{timed.duration:.3f} s, RMS tracking error {np.sqrt(np.mean(error**2)):.1e} mrad")
