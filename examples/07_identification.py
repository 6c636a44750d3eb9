# %% [markdown]
# # 7. Parameters from measurements
#
# A motion that excites an arm is found, the arm records it with noisy sensors, and its masses, inertias and friction
# are identified, as bodies that can exist. A motion that was not used shows how good they are.

# %%
import numpy as np

import torsor
from torsor.identification import Measurements, excite

# %% [markdown]
# ## The real arm, and what we believe of it
#
# The real arm has friction; our model has none, and masses that are a quarter too small.

# %%
real = torsor.library.two_link().with_gravity((0, -9.81, 0))
for joint, (coulomb, viscous) in zip(real.joint_names, ((0.4, 0.3), (0.2, 0.1)), strict=True):
    real = real.with_friction(joint, coulomb=coulomb, viscous=viscous, smooth=0.02)
assumed = real.inertial.replaced(0.75 * real.inertial.values).without_friction()

# %% [markdown]
# ## A motion that excites
#
# A Fourier series within limits of position and speed, with the least condition number of the regressor.

# %%
limits = {"lower": [-2.0, -2.0], "upper": [2.0, 2.0], "velocity": [4.0, 6.0]}
motion, other = (excite(assumed, 6.0, 3, **limits, seed=seed) for seed in (0, 1))
print(f"condition number {motion.condition:.0f}")


# %%
def measured(path: torsor.identification.Excitation, seed: int) -> Measurements:
    """Return the records of encoders and torque sensors while a controller tracks the motion."""
    law = torsor.control.computed_torque(assumed, path.law, bandwidth=40.0)
    run = torsor.simulate(real, path.at(0.0).q, duration=12.0, controller=law, control_period=1e-3)
    noise = np.random.default_rng(seed)
    q = run.q + 1e-5 * noise.normal(size=run.q.shape)
    tau = run.tau + 0.02 * noise.normal(size=run.tau.shape)
    return Measurements.from_positions(run.times, q, tau, cutoff=10.0)


found = torsor.identify(assumed, measured(motion, 0), physical=True)
print(found.report())

# %% [markdown]
# ## A motion that was not used

# %%
new = measured(other, 1)
check = found.validate(new)
before = np.sqrt(np.mean((new.tau - assumed.inverse_dynamics(new.q, new.v, new.a)) ** 2, axis=0))
print("RMS error of the forces (N m): as assumed", before.round(3), "identified", check.rms.round(3), "noise 0.02")

# %%
check.plot()

# %% [markdown]
# From log files, the same is `torsor identify robot.urdf log.csv --cutoff 10 --physical -o real.urdf`.
