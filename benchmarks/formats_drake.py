"""Write robots as SDF and URDF, and compare their dynamics with those of Drake.

    pip install drake
    python benchmarks/formats_drake.py [FILE ...]

If no files are given, all URDF files of the package example-robot-data are used. Drake reads SDF with libsdformat, the
reference reader of the format. The mass matrix and the gravity, Coriolis and centrifugal forces are compared at a
random state. Joints that follow others are free in Drake, so its results are projected onto the motion of the robot.
Robots with joints other than hinges and slides, or with physically impossible inertias, which Drake replaces, are
omitted. The exit code is 1 if a difference is above 1e-10.
"""

import argparse
import logging
import sys
import tempfile
import warnings
from collections import defaultdict
from importlib.metadata import files
from pathlib import Path

import numpy as np
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JointIndex

import torsor
from torsor.base.arrays import Array

TOLERANCE = 1e-10
SUFFIXES = (".sdf", ".urdf")


class InDrake:
    """A robot file in Drake: mass matrix and bias forces along the coordinates of a robot; its velocities are G v."""

    def __init__(self, file: Path, robot: torsor.Robot, again: torsor.Robot):
        self.plant = MultibodyPlant(0.0)
        Parser(self.plant).AddModels(str(file))
        base = self.plant.GetBodyByName(again.base.name)
        if file.suffix == ".urdf" and base.name() != "world":  # the root link of a URDF floats in Drake
            self.plant.WeldFrames(self.plant.world_frame(), base.body_frame())
        self.plant.mutable_gravity_field().set_gravity_vector(robot.gravity)
        self.plant.Finalize()
        every = (self.plant.get_joint(JointIndex(k)) for k in self.plant.GetJointIndices())
        joints = {joint.name(): joint for joint in every}
        names = dict(zip(robot.joint_names, again.joint_names, strict=False))  # some are renamed
        self.G = np.zeros((self.plant.num_velocities(), robot.nv))
        self.offset = np.zeros(self.plant.num_positions())
        for joint in robot.joints:
            there = joints[names[joint.name]]
            leader = joint.coordinate if joint.follows else joint.name
            self.G[there.velocity_start(), robot.coordinate_names.index(leader)] = joint.ratio if joint.follows else 1.0
            self.offset[there.position_start()] = joint.offset if joint.follows else 0.0

    def dynamics(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return the mass matrix (nv, nv) and the gravity and velocity-dependent forces (nv,)."""
        context, G = self.plant.CreateDefaultContext(), self.G
        self.plant.SetPositions(context, G @ q + self.offset)
        self.plant.SetVelocities(context, G @ v)
        bias = self.plant.CalcBiasTerm(context) - self.plant.CalcGravityGeneralizedForces(context)
        return G.T @ self.plant.CalcMassMatrix(context) @ G, G.T @ bias


def difference(file: Path, robot: torsor.Robot) -> float:
    """Return the largest relative difference between a robot and its file in Drake."""
    again, rng = torsor.load(file), np.random.default_rng(1)
    q, v, zero = rng.uniform(-1, 1, robot.nq), rng.normal(size=robot.nv), np.zeros(robot.nv)
    # Friction and damping, which Drake has elsewhere, are odd in v.
    both = (robot.inverse_dynamics(q, v, zero), robot.inverse_dynamics(q, -v, zero))
    own = robot.mass_matrix(q), (both[0] + both[1]) / 2
    other = InDrake(file, robot, again).dynamics(q, v)
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(own, other, strict=True))


def main() -> int:
    """Compare, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    listed = [Path(str(each.locate())) for each in files("example-robot-data") or [] if each.name.endswith(".urdf")]
    paths = parser.parse_args().files or sorted(each.resolve() for each in listed)
    logging.getLogger("drake").setLevel(logging.CRITICAL)
    found, reasons = defaultdict[str, list[float]](list), []
    for path in paths:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                robot = torsor.load(path).to(device="casadi")
        except torsor.ModelError:
            continue
        if (
            any(link.defect for link in (robot.base, *robot.links))
            or any(j.nv != 1 for j in robot.joints)
            or not robot.nv
        ):
            reasons.append(
                f"{path.stem}: left out: no joint, inertias that no body has, or other joints than hinges and slides"
            )
            continue
        for suffix in SUFFIXES:
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                file = Path(folder, path.stem + suffix)
                try:
                    robot.save(file)
                    found[suffix].append(difference(file, robot))
                except (torsor.ModelError, RuntimeError) as error:
                    reasons.append(f"{path.stem}{suffix}: {' '.join(str(error).split())[:200]}")
                    continue
            if found[suffix][-1] > TOLERANCE:
                reasons.append(f"{path.stem}{suffix}: difference {found[suffix][-1]:.1e}")
    print("| format | robots | largest relative difference |\n|---|---|---|")
    for suffix, differences in found.items():
        print(f"| {suffix} | {len(differences)} | {max(differences, default=0.0):.1e} |")
    print("\n".join(reasons))
    return int(any(max(each, default=0.0) > TOLERANCE for each in found.values()))


if __name__ == "__main__":
    sys.exit(main())
