# %% [markdown]
# # 8. Optimal motions
#
# This tutorial computes the fastest motion of an arm within torque limits, shows which limits are active, and computes
# slower motions that require less effort.

# %%
from matplotlib.figure import Figure

import torsor
from torsor import motion

arm = torsor.library.two_link().with_gravity((0, -9.81, 0))
ends = [motion.Start(q=[-1.2, 0.3], v=0.0), motion.End(q=[0.8, 0.6], v=0.0)]

# %% [markdown]
# A problem consists of a robot, a phase with a fixed or bounded duration (s), an objective and constraints.
# `refine=True` adds nodes until the bounds also hold between nodes.

# %%
problem = motion.MotionProblem(arm, motion.Phase((0.1, 3.0)), motion.Time(), [*ends, motion.Torques(upper=12.0)])
fastest = problem.solve(refine=True)
print(fastest.status, f"{fastest.T:.3f} s in {fastest.iterations} iterations")

# %% [markdown]
# The sensitivity of an active bound is the derivative of the duration with respect to the bound.

# %%
for joint in arm.coordinate_names:
    bounds = [bound for bound in fastest.active if bound.title == "Torques" and bound.label == joint]
    change = -1e3 * sum(abs(bound.sensitivity) for bound in bounds)  # of wider limits
    print(f"{joint}: torque limit active at {len(bounds)} nodes; {change:+.1f} ms per N m")

# %% [markdown]
# Slower motions require less effort, the integral of the squared torques:

# %%
figure = Figure(figsize=(9, 3.2), layout="constrained")
left, right = figure.subplots(1, 2)
for seconds in (fastest.T, 0.8, 1.2):
    objective = motion.Effort() if seconds > fastest.T else motion.Time()
    phase = motion.Phase(seconds) if seconds > fastest.T else motion.Phase((0.1, 3.0))
    result = motion.MotionProblem(arm, phase, objective, [*ends, motion.Torques(upper=12.0)]).solve(refine=True)
    left.plot(result.times / result.T, result.q[:, 0], label=f"{result.T:.2f} s")
    right.plot(result.times / result.T, result.tau[:, 0])
left.set(title="Joint 1 angle", xlabel="time / duration", ylabel="angle (rad)")
right.set(title="Joint 1 torque", xlabel="time / duration", ylabel="torque (N m)")
for limit in (-12.0, 12.0):
    right.axhline(limit, color="black", linestyle="--", linewidth=0.8)
left.legend(title="duration")
figure

# %% [markdown]
# If no solution is found, the error names the conflicting constraints. Here, 0.3 s is too short.

# %%
try:
    motion.MotionProblem(arm, motion.Phase(0.3), motion.Effort(), [*ends, motion.Torques(upper=12.0)]).solve()
except torsor.MotionError as error:
    print(error)
