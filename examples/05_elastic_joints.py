# %% [markdown]
# # 5. Elastic joints and geared motors
#
# This tutorial is for engineers whose robots have elastic gears, belts or series elastic actuators. A joint with an
# elastic transmission has two coordinates, one for the motor and one for the link. The motor may be mounted on any
# link. All algorithms include gyroscopic moments of rotors (Khalil 2010, Hua et al. 2022). See also [control of elastic
# joints](../../simulate/elastic_joints.md).

# %%
import numpy as np
from matplotlib.figure import Figure

import torsor

rigid = torsor.library.six_axis_arm().without_friction()
drive = {"inertia": 3.32e-4, "ratio": 50.0, "stiffness": 8e3, "damping": 1.0}  # kg m^2, -, N m/rad, N m s/rad
elastic = rigid.with_motor("joint3", carrier="link1", **drive)
print(f"{rigid.nv} and {elastic.nv} coordinates; new: {elastic.coordinate_names[-1]}")

# %% [markdown]
# Motor coordinates are angles at the gear output. Without gravity, the motor starts at 0.2 rad/s, so the joint
# oscillates. The simulated frequency is compared with that of the linearised model.

# %%
q0 = np.zeros(7)
v0 = [0, 0, 0, 0, 0, 0, 0.2]
motion = torsor.simulate(elastic.with_gravity((0, 0, 0)), q0, v0, duration=0.4, step=1e-4)
twist = motion.q[:, 2] - motion.q[:, 6]  # joint 3 minus motor
crossings = motion.times[1:][np.diff(np.sign(twist)) != 0]
measured = 1 / (2 * np.mean(np.diff(crossings)))

M = elastic.mass_matrix(q0)
direction = np.zeros(7)
direction[[2, 6]] = 1.0, -1.0
mobility = direction @ np.linalg.solve(M, direction)  # inverse of the effective inertia at the spring
print(f"simulated {measured:.2f} Hz, linear model {np.sqrt(8e3 * mobility) / (2 * np.pi):.2f} Hz")

# %%
figure = Figure(figsize=(8, 3), layout="constrained")
axes = figure.subplots()
axes.plot(motion.times, 1e3 * twist)
axes.set(title="Spring deflection of joint 3", xlabel="time (s)", ylabel="joint minus motor (mrad)")
axes.grid(alpha=0.3)
figure
