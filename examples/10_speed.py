# %% [markdown]
# # 10. Speed: batches, threads, types, C and your own functions
#
# This tutorial is for users who evaluate many states or export C code. The [first call](../../deploy/first_call.md) to
# a robot method compiles it to machine code, which is stored on disk for later processes.

# %%
import tempfile
from pathlib import Path

import casadi as ca
import numpy as np

import torsor

robot = torsor.library.ur5()
states = np.random.default_rng(0).normal(size=(3, 50_000, 6))

# %% [markdown]
# ## Batches, threads and single precision
#
# `to` selects the number of threads, the floating-point type and the device
# ("cuda" for an NVIDIA GPU).

# %%
threaded = robot.to(threads="auto")
single = robot.to(dtype="float32")
tau = robot.inverse_dynamics(*states)
print(bool((threaded.inverse_dynamics(*states) == tau).all()))  # bit-identical for any number of threads
error = np.abs(single.inverse_dynamics(*states.astype(np.float32)) - tau).max() / np.abs(tau).max()
print(f"largest float32 error: {error:.0e} of the largest torque")

# %% [markdown]
# ## Your own functions
#
# `torsor.compile` compiles any CasADi function, and `robot.function` returns robot algorithms as CasADi functions.
# Here, `slope` returns the distance of a link from the base, and its gradient.

# %%
q = ca.SX.sym("q", 6)
reach = ca.norm_2(robot.function("pose:wrist_3_link")(q)[:3, 3])
slope = torsor.compile(ca.Function("slope", [q], [reach, ca.gradient(reach, q)]))
distance, gradient = slope(states[0])
print(distance.shape, gradient.shape)

# %% [markdown]
# ## C code for controllers
#
# `torsor.export.c` writes C code, a header and a CMake file.

# %%
with tempfile.TemporaryDirectory() as folder:
    torsor.export.c(robot, folder, ["inverse_dynamics", "gravity_force"])
    print(sorted(path.name for path in Path(folder).iterdir()))
