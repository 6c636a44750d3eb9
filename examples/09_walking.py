# %% [markdown]
# # 9. Human walking
#
# This tutorial for biomechanists and ergonomists predicts a walking step for a skeleton with 55 degrees of freedom, of
# which 38 move (after Barman 2020, chapter V), and compares it with measured gait. The model then lifts a box.

# %%
import numpy as np

import torsor
from torsor.human import Stride, joint_torques, lifting, walking

body = torsor.library.human(height=1.75, mass=70.0)
print(body.nv, "degrees of freedom,", f"{body.mass:.0f} kg")

# %%
torsor.human.draw(body)

# %% [markdown]
# ## Walking
#
# The motion, ground reaction forces, and step length, width and timing are computed together for a walking speed
# (default: 1.25 m/s). The objective has terms for metabolic energy, effort and accelerations. The first run takes one
# to two minutes, mostly for compilation.
#
# `likeness` returns correlations of joint angles with [built-in references](../../people/compare_walks.md#references),
# to which no weight was fitted.

# %%
result = walking(body).solve()
stride = Stride(result)
print(result.status, f"{stride.step.speed:.2f} m/s, step {stride.step.length:.2f} m")
print(f"peak vertical ground reaction force {stride.force[:, 1].max():.2f} body weights")
for name, curve in list(stride.likeness().items())[:4]:
    print(f"{name:24} correlation {curve.correlation:.2f}")

# %%
stride.plot()

# %% [markdown]
# ## Lifting a box
#
# By default, both hands lift a box of 10 kg from a height of 0.3 m to 1 m.

# %%
lift = lifting(body).solve(refine=True)
torques = np.abs(joint_torques(lift)).max(axis=0)
for name in ("spine1_flexion", "right_hip_flexion", "right_knee_flexion"):
    print(f"{name:20} {torques[lift.robot.coordinate_names.index(name)]:5.0f} N m at most")
