# %% [markdown]
# # 2. Robots from files, tables and screws
#
# This tutorial defines robots by Denavit-Hartenberg tables, screw axes, or links and joints, and loads them from files.
# A `Robot` is immutable, in SI units and radians; methods such as `with_payload` return a new robot.

# %%
import tempfile
from pathlib import Path

import numpy as np

import torsor

# %% [markdown]
# ## One arm, three descriptions
#
# The arm consists of two rods (each 1 m, 2 kg) that move in a vertical plane. In a standard Denavit-Hartenberg table,
# each link frame is at the far end of its link. `from_screws` takes home poses of the links (here, of their centres of
# mass), screw axes in the space frame, and spatial inertias in link axes (angular part first). All descriptions yield
# the same joint torques (N·m).

# %%
inertia = np.diag([0.0, 1 / 6, 1 / 6])
rod = torsor.DHLink(a=1.0, mass=2.0, com=(-0.5, 0, 0), inertia=inertia)
by_table = torsor.from_dh([rod, rod], gravity=(0, -9.81, 0))

home = [torsor.spatial.make_pose(p=[x, 0, 0]) for x in (0.5, 1.5)]
axes = [[0, 0, 1, 0, 0, 0], [0, 0, 1, 0, -1, 0]]
by_screws = torsor.from_screws(home, axes, [np.diag([0, 1 / 6, 1 / 6, 2, 2, 2])] * 2, gravity=(0, -9.81, 0))

links = [torsor.Link("ground"), *(torsor.Link(name, 2.0, (0.5, 0, 0), inertia) for name in ("upper", "lower"))]
joints = [
    torsor.Joint("shoulder", "revolute", "ground", "upper"),
    torsor.Joint("elbow", "revolute", "upper", "lower", torsor.spatial.make_pose(p=[1, 0, 0])),
]
by_parts = torsor.build("arm", links, joints, gravity=(0, -9.81, 0))

q, v, a = [0.3, -0.8], [1.0, 2.0], [0.5, -0.5]
for robot in (by_table, by_screws, by_parts):
    print(robot.inverse_dynamics(q, v, a).round(9))

# %% [markdown]
# ## Files
#
# `torsor.load` detects the format from the file suffix and warns about unsupported elements. `base="floating"` adds a
# free joint at the root link. `save` warns about forces, limits and wheels that the format cannot express.

# %%
arm = torsor.library.ur5()
with tempfile.TemporaryDirectory() as folder:
    for name in ("arm.urdf", "arm.toml"):
        arm.save(Path(folder, name))
        again = torsor.load(Path(folder, name))
        same = np.allclose(again.mass_matrix(np.ones(6)), arm.mass_matrix(np.ones(6)), rtol=1e-12)
        print(name, "has the same mass matrix:", bool(same))
    floating = torsor.load(Path(folder, "arm.urdf"), base="floating")
print(repr(floating))
print(floating.position_names[:8])
