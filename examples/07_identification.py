# %% [markdown]
# # 7. Parameter identification
#
# This tutorial is for engineers who need an accurate model of a real robot. It designs an excitation trajectory,
# simulates measurements with sensor noise, and identifies physically consistent masses, inertias and friction. A second
# motion validates the result.

# %%
import numpy as np

import torsor
from torsor.identification import Measurements, excite

# %% [markdown]
# ## The real arm and the assumed model
#
# The real arm has friction. The assumed model has no friction, and its inertial parameters are 25 % too small.

# %%
real = torsor.library.two_link().with_gravity((0, -9.81, 0))
for joint, (coulomb, viscous) in zip(real.joint_names, ((0.4, 0.3), (0.2, 0.1)), strict=True):
    real = real.with_friction(joint, coulomb=coulomb, viscous=viscous, smooth=0.02)
assumed = real.inertial.replaced(0.75 * real.inertial.values).without_friction()

# %% [markdown]
# ## Excitation trajectory
#
# `excite` designs a Fourier series that minimises the condition number of the regressor within position and velocity
# limits.

# %%
limits = {"lower": [-2.0, -2.0], "upper": [2.0, 2.0], "velocity": [4.0, 6.0]}
motion, other = (excite(assumed, 6.0, 3, **limits, seed=seed) for seed in (0, 1))
print(f"condition number {motion.condition:.0f}")


# %%
def measured(path: torsor.identification.Excitation, seed: int) -> Measurements:
    """Return encoder and torque measurements while a controller tracks the motion."""
    law = torsor.control.computed_torque(assumed, path.law, bandwidth=40.0)
    run = torsor.simulate(real, path.at(0.0).q, duration=12.0, controller=law, control_period=1e-3)
    noise = np.random.default_rng(seed)
    q = run.q + 1e-5 * noise.normal(size=run.q.shape)
    tau = run.tau + 0.02 * noise.normal(size=run.tau.shape)
    return Measurements.from_positions(run.times, q, tau, cutoff=10.0)


identified = torsor.identify(assumed, measured(motion, 0), physical=True)
print(identified.report())

# %% [markdown]
# ## Validation on another motion

# %%
new = measured(other, 1)
check = identified.validate(new)
before = np.sqrt(np.mean((new.tau - assumed.inverse_dynamics(new.q, new.v, new.a)) ** 2, axis=0))
print("RMS torque error (N m): assumed", before.round(3), "identified", check.rms.round(3), "sensor noise 0.02")

# %%
check.plot()

# %% [markdown]
# To identify a robot from a log file, run `torsor identify robot.urdf log.csv --cutoff 10 --physical -o real.urdf`.
