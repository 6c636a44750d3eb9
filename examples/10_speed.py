# %% [markdown]
# # 10. Speed: batches, threads, types, C and your own functions
#
# Methods of a robot are machine code for that robot. This page shows how to get the most out of it. Times depend on the
# machine and are not printed; `make bench` measures them beside other libraries.

# %%
import tempfile
from pathlib import Path

import casadi as ca
import numpy as np

import torsor

robot = torsor.library.ur5()
states = np.random.default_rng(0).normal(size=(3, 50_000, 6))

# %% [markdown]
# ## Batches, threads, single precision
#
# One call for many states. `to` changes the target: threads, type of number, device ("cuda" for an NVIDIA card).

# %%
quick = robot.to(threads="auto")
single = robot.to(dtype="float32")
tau = robot.inverse_dynamics(*states)
print(bool((quick.inverse_dynamics(*states) == tau).all()))  # the same bits for any number of threads
error = np.abs(single.inverse_dynamics(*states.astype(np.float32)) - tau).max() / np.abs(tau).max()
print(f"float32: {error:.0e} of the largest torque")

# %% [markdown]
# ## No waiting for the first call
#
# The first call compiles; the code is kept on disk for later processes. `torsor warm ROBOT` does it ahead. For a single
# evaluation, CasADi's virtual machine needs no compilation.

# %%
print(np.allclose(robot.to(device="casadi").gravity_force(np.ones(6)), robot.gravity_force(np.ones(6))))

# %% [markdown]
# ## Only the entries that are not zero

# %%
big = torsor.library.quadruped()
M = big.derivatives.sparse("mass_matrix", big.neutral())
print(f"{M.values.shape[-1]} of {big.nv**2} entries of the mass matrix are not zero")

# %% [markdown]
# ## Your own functions
#
# Any CasADi function compiles in the same way, and functions of a robot are CasADi functions.

# %%
q = ca.SX.sym("q", 6)
reach = ca.norm_2(robot.function("pose:wrist_3_link")(q)[:3, 3])
slope = torsor.compile(ca.Function("slope", [q], [reach, ca.gradient(reach, q)]))
distance, gradient = slope(states[0])
print(distance.shape, gradient.shape)

# %% [markdown]
# ## C for a controller

# %%
with tempfile.TemporaryDirectory() as folder:
    torsor.export.c(robot, folder, ["inverse_dynamics", "gravity_force"])
    print(sorted(path.name for path in Path(folder).iterdir()))
