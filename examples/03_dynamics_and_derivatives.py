# %% [markdown]
# # 3. Dynamics, derivatives and rates
#
# This tutorial computes inverse and forward dynamics, exact derivatives and force rates, for single states and batches.

# %%
import numpy as np

import torsor

robot = torsor.library.ur5()
q, v, a = np.random.default_rng(0).normal(size=(3, 6))

# %%
tau = robot.inverse_dynamics(q, v, a)
print("torques (N m):", tau.round(3))
print("forward dynamics returns a:", bool(np.allclose(robot.forward_dynamics(q, v, tau), a)))
M, h = robot.mass_matrix(q), robot.bias_force(q, v)  # h: torques at zero acceleration
print("M a + h = tau:", bool(np.allclose(M @ a + h, tau)))

# %% [markdown]
# ## Batches
#
# Leading array axes are batch axes.

# %%
states = np.random.default_rng(1).normal(size=(3, 100_000, 6))
print(robot.inverse_dynamics(*states).shape)

# %% [markdown]
# ## Derivatives
#
# A single recursion computes the exact derivatives of torques with respect to q, v and a. The error of a linear
# prediction is of second order: a step in q ten times smaller reduces it a hundredfold.

# %%
dq, dv, da = robot.derivatives.inverse_dynamics(q, v, a)
change = np.random.default_rng(3).normal(size=6)
for size in (1e-2, 1e-3, 1e-4):
    error = robot.inverse_dynamics(q + size * change, v, a) - tau - dq @ (size * change)
    print(f"step {size:.0e}: {np.abs(error).max():.1e} N m")

# %% [markdown]
# `robot.derivatives` also provides Jacobian-vector and vector-Jacobian products of all methods (`jvp`, `vjp`),
# derivatives of `joint_wrenches`, and the `hessian` of a weighted sum of forces.
#
# ## Force rates
#
# `force_rate` returns the forces and their time derivatives for a given jerk (Guarino Lo Bianco 2009).

# %%
jerk = np.random.default_rng(2).normal(size=6)
tau, rate = robot.force_rate(q, v, a, jerk)
print("force rates (N m/s):", rate.round(1))
