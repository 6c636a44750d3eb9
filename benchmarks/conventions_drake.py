"""Compare dynamics and kinematics of a UR5 with Drake's MultibodyPlant, as listed in docs/start/coming_from/drake.md.

    pip install drake
    python benchmarks/conventions_drake.py

The script prints the largest difference of each quantity relative to its largest entry, for a fixed and a floating
base, with joint damping and an external force. The exit code is 1 if a difference is above 1e-13.
"""

import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pydrake.autodiffutils import AutoDiffXd, ExtractGradient, InitializeAutoDiff
from pydrake.multibody.math import SpatialForce
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import ExternallyAppliedSpatialForce, MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable, MultibodyForces_

import torsor
from torsor.base.arrays import Array

TOLERANCE = 1e-13
LINK, POINT = "wrist_3_link", np.array([0.1, 0.02, -0.03])
MOMENT, FORCE = np.array([0.1, 0.2, -0.4]), np.array([3.0, -2.0, 5.0])


def plant_of(path: Path, welded: bool) -> Any:
    """Return the plant of a file, with its base welded to the world or floating."""
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels(str(path))
    if welded:
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base_link"))
    plant.Finalize()
    return plant


def stacked(vector: Any) -> Array:
    """Return a Drake spatial vector as an array (6,)."""
    return np.concatenate([vector.rotational(), vector.translational()])


def inverse_dynamics(plant: Any, context: Any, a: Any, scalar: type = float) -> Any:
    """Return generalised forces, including gravity and damping."""
    forces = MultibodyForces_[scalar](plant)
    plant.CalcForceElementsContribution(context, forces)
    return plant.CalcInverseDynamics(context, a, forces)


def fixed_base(path: Path, rng: np.random.Generator) -> Iterator[tuple[str, Array, Array]]:
    """Yield names of quantities with the values of Torsor and of Drake."""
    robot, plant = torsor.load(path), plant_of(path, welded=True)
    q, v, a, tau = rng.normal(size=(4, robot.nv))
    context, by_v, world = plant.CreateDefaultContext(), JacobianWrtVariable.kV, plant.world_frame()
    plant.SetPositions(context, q)
    plant.SetVelocities(context, v)
    body = plant.GetBodyByName(LINK)
    frame, bare = body.body_frame(), robot.without_friction()
    yield "CalcInverseDynamics", robot.inverse_dynamics(q, v, a), inverse_dynamics(plant, context, a)
    yield "CalcMassMatrix", robot.mass_matrix(q), plant.CalcMassMatrix(context)
    yield "CalcBiasTerm", bare.bias_force(q, v) - bare.gravity_force(q), plant.CalcBiasTerm(context)
    yield "CalcGravityGeneralizedForces", -robot.gravity_force(q), plant.CalcGravityGeneralizedForces(context)
    yield "EvalBodyPoseInWorld", robot.pose(q, LINK), plant.EvalBodyPoseInWorld(context, body).GetAsMatrix4()
    velocity = stacked(plant.EvalBodySpatialVelocityInWorld(context, body))
    yield "EvalBodySpatialVelocityInWorld", robot.velocity(q, v, LINK, axes="aligned"), velocity
    acceleration = stacked(plant.CalcSpatialAccelerationsFromVdot(context, a)[int(body.index())])
    yield "CalcSpatialAccelerationsFromVdot", robot.acceleration(q, v, a, LINK, axes="aligned"), acceleration
    for axes, expressed in (("local", frame), ("aligned", world)):
        J = plant.CalcJacobianSpatialVelocity(context, by_v, frame, np.zeros(3), world, expressed)
        yield f"CalcJacobianSpatialVelocity, {axes}", robot.jacobian(q, LINK, axes=axes), J
    bias = stacked(plant.CalcBiasSpatialAcceleration(context, by_v, frame, np.zeros(3), world, world))
    yield "CalcBiasSpatialAcceleration", robot.task.jacobian_rate(q, v, LINK, axes="aligned") @ v, bias
    center = plant.CalcCenterOfMassPositionInWorld(context)
    momentum = stacked(plant.CalcSpatialMomentumInWorldAboutPoint(context, center))
    yield "CalcCenterOfMassPositionInWorld", robot.center_of_mass(q), center
    yield "CalcSpatialMomentumInWorldAboutPoint", robot.momentum(q, v), momentum
    J = plant.CalcJacobianCenterOfMassTranslationalVelocity(context, by_v, world, world)
    yield "CalcJacobianCenterOfMassTranslationalVelocity", robot.centroidal.jacobian(q), J
    yield "CalcKineticEnergy", robot.kinetic_energy(q, v), plant.CalcKineticEnergy(context)
    yield "CalcPotentialEnergy", robot.potential_energy(q), plant.CalcPotentialEnergy(context)

    applied = ExternallyAppliedSpatialForce()
    applied.body_index, applied.p_BoBq_B, applied.F_Bq_W = body.index(), POINT, SpatialForce(MOMENT, FORCE)
    plant.get_applied_spatial_force_input_port().FixValue(context, [applied])
    plant.get_applied_generalized_force_input_port().FixValue(context, tau)
    external = robot.wrench_at(q, LINK, moment=MOMENT, force=FORCE, point=POINT)
    result = plant.get_generalized_acceleration_output_port().Eval(context)
    yield "generalized acceleration port", robot.forward_dynamics(q, v, tau, external), result
    reactions = plant.get_reaction_forces_output_port().Eval(context)
    rows = [stacked(reactions[int(plant.GetJointByName(name).index())]) for name in robot.joint_names]
    yield "reaction forces port", robot.joint_wrenches(q, v, result, external), np.array(rows)

    plant = plant.ToAutoDiffXd()
    context, z = plant.CreateDefaultContext(), InitializeAutoDiff(np.concatenate([q, v, a])).ravel()
    plant.SetPositions(context, z[:6])
    plant.SetVelocities(context, z[6:12])
    gradient = ExtractGradient(inverse_dynamics(plant, context, z[12:], AutoDiffXd))
    yield "AutoDiffXd of CalcInverseDynamics", np.hstack(robot.derivatives.inverse_dynamics(q, v, a)), gradient


def floating_base(path: Path, rng: np.random.Generator) -> Iterator[tuple[str, Array, Array]]:
    """Yield names of quantities with the values of Torsor and of Drake, which are transformed to base axes."""
    robot, plant = torsor.load(path, base="floating"), plant_of(path, welded=False)
    quaternion, place, joints = rng.normal(size=4), rng.normal(size=3), rng.normal(size=6)
    quaternion /= np.linalg.norm(quaternion)
    v, a = rng.normal(size=(2, robot.nv))  # in the axes of the world
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, np.concatenate([quaternion, place, joints]))
    plant.SetVelocities(context, v)
    turn = np.eye(robot.nv)
    turn[:6, :6] = np.kron(np.eye(2), torsor.spatial.from_quaternion(np.roll(quaternion, -1)).T)
    q = np.concatenate([place, np.roll(quaternion, -1), joints])
    local = a.copy()
    local[3:6] -= np.cross(v[:3], v[3:6])
    forces = turn @ inverse_dynamics(plant, context, a)
    yield "CalcInverseDynamics, floating", robot.inverse_dynamics(q, turn @ v, turn @ local), forces
    yield "CalcMassMatrix, floating", robot.mass_matrix(q), turn @ plant.CalcMassMatrix(context) @ turn.T
    yield "CalcKineticEnergy, floating", robot.kinetic_energy(q, turn @ v), plant.CalcKineticEnergy(context)


def main() -> int:
    """Print the table; return 1 if a difference is too large."""
    logging.getLogger("drake").setLevel(logging.ERROR)  # limits of joints are not enforced by a continuous plant
    robot, rng, largest = torsor.library.ur5(), np.random.default_rng(0), 0.0
    for name in robot.joint_names:
        robot = robot.with_friction(name, viscous=0.7)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "arm.urdf")
        robot.save(path)
        for quantities in (fixed_base(path, rng), floating_base(path, rng)):
            for name, ours, theirs in quantities:
                difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
                largest = max(largest, difference)
                print(f"{name:48} {difference:.1e}")
    return int(largest > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
