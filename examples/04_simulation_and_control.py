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
    """Positions of the four joints over time: three that swing, and the slide, whose range is -0.2 to 0 m."""
    return [0.6 * ca.sin(2 * t), 0.8 * ca.cos(2 * t), -0.1 + 0.05 * ca.sin(4 * t), 1.2 * ca.sin(t)]


law = torsor.control.computed_torque(arm, wanted, bandwidth=15.0)
q0, v0, a0 = law.reference(0.0)  # start on the path
motion = torsor.simulate(loaded, q0, v0, duration=3.0, controller=law)
reference = law.reference(motion.times)[0]
print(motion)
print("largest errors after the first second:", np.abs(motion.q - reference)[motion.times > 1].max(axis=0).round(4))

# %%
motion.plot()

# %% [markdown]
# A controller is a function of (t, q, v) that is compiled into the step; one written in plain Python works too, and is
# called at every sample. Forces of the environment are `external=`; sampling and delay of a digital controller are
# `control_period=` and `delay=`.
#
# ## A thousand at once
#
# Leading axes are rollouts. Here each arm starts somewhere else, and the controller brings all of them to the path.

# %%
spread = np.random.default_rng(0).uniform(-1, 1, size=(1000, 4)) * [0.05, 0.05, 0.02, 0.05]
swarm = torsor.simulate(loaded, q0 + spread, v0, duration=1.0, controller=law, record=0.1)
off = np.abs(swarm.q - law.reference(swarm.times)[0]).max(axis=0)  # of the worst arm, at each time
print(swarm.q.shape, swarm.status)
print(f"shoulder: off by {off[0, 0]:.2f} rad at first, by {off[-1, 0]:.4f} rad after a second")
