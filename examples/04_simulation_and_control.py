# %% [markdown]
# # 4. Simulation and control
#
# This tutorial is for control engineers. A SCARA arm follows a path under computed-torque control, with a payload
# unknown to the controller. Then, 1,000 arms are simulated in one batch.

# %%
import casadi as ca
import numpy as np

import torsor

arm = torsor.library.scara()
loaded = arm.with_payload(arm.link_names[-1], mass=0.2)


# %%
def desired(t: ca.SX) -> list[ca.SX]:
    """Return the desired joint positions; the third joint is prismatic, with a range of -0.2 to 0 m."""
    return [0.6 * ca.sin(2 * t), 0.8 * ca.cos(2 * t), -0.1 + 0.05 * ca.sin(4 * t), 1.2 * ca.sin(t)]


law = torsor.control.computed_torque(arm, desired, bandwidth=15.0)  # rad/s
q0, v0, a0 = law.reference(0.0)  # initial state on the path
motion = torsor.simulate(loaded, q0, v0, duration=3.0, controller=law)
reference = law.reference(motion.times)[0]
print(motion)
error = np.abs(motion.q - reference)[motion.times > 1].max(axis=0)
print("largest errors after the first second (rad, rad, m, rad):", error.round(4))

# %%
from matplotlib.figure import Figure

figure = Figure(figsize=(9, 6), layout="constrained")
rows = figure.subplots(3, 1, sharex=True)
rows[0].plot(motion.times, motion.q, label=arm.joint_names)
rows[0].plot(motion.times, reference, "k:")
rows[1].plot(motion.times, 1000 * (motion.q - reference))
rows[2].plot(motion.times, motion.tau)
for axes, label in zip(rows, ("position (rad, m)", "error (mrad, mm)", "force (N m, N)"), strict=True):
    axes.set(ylabel=label)
rows[2].set(xlabel="time (s); dotted: reference")
figure.legend(loc="outside upper center", ncols=4)
figure

# %% [markdown]
# The unknown payload lowers the prismatic joint by 6 mm, because the controller has no integral action.
#
# `law.function` is a CasADi function of (t, q, v), which is compiled into the integration step. Python functions are
# called once per step. `external=` applies wrenches to links. `control_period=` and `delay=` simulate a digital
# controller.
#
# ## Batches of simulations
#
# Leading axes of the initial state are batch axes. Each arm starts at a different position and converges to the path.

# %%
spread = np.random.default_rng(0).uniform(-1, 1, size=(1000, 4)) * [0.05, 0.05, 0.02, 0.05]
batch = torsor.simulate(loaded, q0 + spread, v0, duration=1.0, controller=law, record=0.1)
error = np.abs(batch.q - law.reference(batch.times)[0]).max(axis=0)  # largest error of all arms, at each time
print(batch.q.shape, batch.status)  # arms, times, joints
print(f"shoulder error: {error[0, 0]:.2f} rad at the start, {error[-1, 0]:.4f} rad after 1 s")
