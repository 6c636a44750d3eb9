# %% [markdown]
# # 4. Simulation and control
#
# An arm follows a path under a controller that does not know its load, and a thousand arms are simulated at once.

# %%
import casadi as ca
import numpy as np

import torsor

arm = torsor.library.scara()
loaded = arm.with_payload(arm.link_names[-1], mass=0.2)  # the real arm carries a load that the controller does not know


# %%
def wanted(t: ca.SX) -> list[ca.SX]:
    """Positions of the four joints over time: three that swing, and the slide."""
    return [0.6 * ca.sin(2 * t), 0.8 * ca.cos(2 * t), 0.05 * ca.sin(4 * t), 1.2 * ca.sin(t)]


law = torsor.control.computed_torque(arm, wanted, bandwidth=15.0)
motion = torsor.simulate(loaded, [0, 0.8, 0, 0], duration=3.0, controller=law)
reference = law.reference(motion.times)[0]
print(motion)
print("largest errors after the first second:", np.abs(motion.q - reference)[motion.times > 1].max(axis=0).round(4))

# %%
motion.plot()

# %% [markdown]
# A controller is a function of (t, q, v) that is compiled into the step; one written in plain Python works too, and is
# called at every sample. Forces of the environment are `external=`; sampling and delay of a digital controller are
# `control_period=` and `control_delay=`.
#
# ## A thousand at once
#
# Leading axes are rollouts. Here the initial velocities differ.

# %%
starts = np.zeros((1000, 4))
rates = np.random.default_rng(0).normal(scale=0.5, size=(1000, 4))
swarm = torsor.simulate(arm.with_friction(arm.joint_names[0], viscous=1.0), starts, rates, duration=1.0, record=0.1)
print(swarm.q.shape, swarm.status)
