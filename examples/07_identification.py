# %% [markdown]
# # 7. Parameter identification
#
# This tutorial designs an excitation trajectory, identifies physically consistent masses, inertias and friction from
# simulated measurements with sensor noise, and validates them with a second motion.

# %%
import numpy as np

import torsor
from torsor.identification import Measurements, excite

# %% [markdown]
# ## The real arm and the assumed model
#
# The (simulated) real arm has friction. The assumed model has none, and its inertial parameters are 25 % too small.

# %%
real = torsor.library.two_link().with_gravity((0, -9.81, 0))
for joint, (coulomb, viscous) in zip(real.joint_names, ((0.4, 0.3), (0.2, 0.1)), strict=True):
    real = real.with_friction(joint, coulomb=coulomb, viscous=viscous, smooth=0.02)
assumed = real.inertial.replaced(0.75 * real.inertial.values).without_friction()

# %% [markdown]
# ## Excitation trajectory
#
# `excite` designs a Fourier series, here with a period of 6 s and 3 harmonics, that minimises the condition number of
# the regressor within position and velocity limits.

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
    q = run.q + 1e-5 * noise.normal(size=run.q.shape)  # rad
    tau = run.tau + 0.02 * noise.normal(size=run.tau.shape)  # N m
    return Measurements.from_positions(run.times, q, tau, cutoff=10.0)  # Hz


identified = torsor.identify(assumed, measured(motion, 0), physical=True)
print(identified.report())

# %% [markdown]
# The report lists base parameters (the parameter combinations that determine the torques) with standard deviations.
# Parameters are masses m, first moments mx and my, moments of inertia J about the link origin, rotor inertias and
# friction.
#
# ## Validation on another motion

# %%
new = measured(other, 1)
check = identified.validate(new)
before = np.sqrt(np.mean((new.tau - assumed.inverse_dynamics(new.q, new.v, new.a)) ** 2, axis=0))
print("RMS torque error (N m): assumed", before.round(3), "identified", check.rms.round(3), "sensor noise 0.02")

# %%
check.plot()

# %% [markdown]
# See also [how to identify a robot from a log](../../identify/identify_from_a_log.md).
