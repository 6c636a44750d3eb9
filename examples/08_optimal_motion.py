# %% [markdown]
# # 8. Optimal motions
#
# The fastest motion of an arm within its torques; the same with less effort; and what limits it.

# %%
from matplotlib.figure import Figure

import torsor
from torsor import motion

arm = torsor.library.two_link().with_gravity((0, -9.81, 0))
ends = [motion.Start(q=[-1.2, 0.3], v=0.0), motion.End(q=[0.8, 0.6], v=0.0)]

# %% [markdown]
# A problem is a robot, a phase with a duration (here free), what is minimised, and what holds.

# %%
problem = motion.MotionProblem(arm, motion.Phase((0.1, 3.0)), motion.Time(), [*ends, motion.Torques(upper=12.0)])
fastest = problem.solve(refine=True)
print(fastest.status, f"{fastest.T:.3f} s in {fastest.iterations} iterations")

# %% [markdown]
# Which bound is in the way, and what would more of it bring? Sensitivities say it without solving again.

# %%
for joint in arm.coordinate_names:
    own = [bound for bound in fastest.active if bound.title == "Torques" and bound.label == joint]
    print(f"{joint}: at its limit at {len(own)} nodes; {1e3 * sum(bound.sensitivity for bound in own):+.1f} ms per N m")

# %% [markdown]
# Less effort takes longer; a family of motions shows the trade.

# %%
figure = Figure(figsize=(9, 3.2), layout="constrained")
left, right = figure.subplots(1, 2)
for seconds in (fastest.T, 0.8, 1.2):
    objective = motion.Effort() if seconds > fastest.T else motion.Time()
    phase = motion.Phase(seconds) if seconds > fastest.T else motion.Phase((0.1, 3.0))
    found = motion.MotionProblem(arm, phase, objective, [*ends, motion.Torques(upper=12.0)]).solve(refine=True)
    left.plot(found.times / found.T, found.q[:, 0], label=f"{found.T:.2f} s")
    right.plot(found.times / found.T, found.tau[:, 0])
left.set(title="First joint", xlabel="fraction of the motion", ylabel="angle (rad)")
right.set(title="Its torque (limit 12 N m)", xlabel="fraction of the motion", ylabel="torque (N m)")
left.legend()
figure

# %% [markdown]
# Where a problem has no solution, the error says so and names what conflicts: 0.3 s is less than the fastest motion
# takes.

# %%
try:
    motion.MotionProblem(arm, motion.Phase(0.3), motion.Effort(), [*ends, motion.Torques(upper=12.0)]).solve()
except torsor.MotionError as error:
    print(error)
