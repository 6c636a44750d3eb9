# %% [markdown]
# # 3. Dynamics, derivatives and rates
#
# Inverse and forward dynamics, their exact derivatives, and the rates of forces: for one state or a million.

# %%
import numpy as np

import torsor

robot = torsor.library.ur5()
q, v, a = np.random.default_rng(0).normal(size=(3, 6))

# %%
tau = robot.inverse_dynamics(q, v, a)
print(tau.round(3))
print(bool(np.allclose(robot.forward_dynamics(q, v, tau), a)))
M, h = robot.mass_matrix(q), robot.bias_force(q, v)
print(bool(np.allclose(M @ a + h, tau)))

# %% [markdown]
# ## Batches
#
# Arrays may have any leading axes. One call computes all states in machine code; there is no loop to write.

# %%
states = np.random.default_rng(1).normal(size=(3, 100_000, 6))
print(robot.inverse_dynamics(*states).shape)

# %% [markdown]
# ## Derivatives
#
# By q, v and a, exact, from one recursion. What they leave of a small change is of second order: a step ten times
# smaller leaves a hundredth.

# %%
dq, dv, da = robot.derivatives.inverse_dynamics(q, v, a)
change = np.random.default_rng(3).normal(size=6)
for size in (1e-2, 1e-3, 1e-4):
    rest = robot.inverse_dynamics(q + size * change, v, a) - tau - dq @ (size * change)
    print(f"step {size:.0e}: {np.abs(rest).max():.1e} N m")

# %% [markdown]
# Directional derivatives of every method are `robot.derivatives.jvp` and `.vjp`; derivatives of joint reactions are
# `derivatives.joint_wrenches`; the Hessian of weighted forces is `derivatives.hessian`.
#
# ## Rates
#
# The rate of the forces for a given jerk, by the recursion that Guarino Lo Bianco's paper introduced. Checked here
# against a difference quotient along the motion.

# %%
jerk = np.random.default_rng(2).normal(size=6)
tau, rate = robot.force_rate(q, v, a, jerk)
h = 1e-6
later = [q + h * v + h**2 / 2 * a, v + h * a + h**2 / 2 * jerk, a + h * jerk]
earlier = [q - h * v + h**2 / 2 * a, v - h * a + h**2 / 2 * jerk, a - h * jerk]
difference = (robot.inverse_dynamics(*later) - robot.inverse_dynamics(*earlier)) / (2 * h)
print(f"{np.abs(difference - rate).max() / np.abs(rate).max():.0e}")

# %% [markdown]
# ## What it costs
#
# The recursion is traced for this robot, so that its zeros cost nothing: these are all additions and multiplications.

# %%
for name in ("inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives", "force_rate"):
    print(f"{name:30} {robot.operation_count(name).arithmetic:5}")
