"""Closed loops against Pinocchio's constrained dynamics, with its own model of the same chains."""

import numpy as np
import pytest

import torsor

from .loaded import close, state
from .mechanisms import closed_chain

pin = pytest.importorskip("pinocchio")


def as_pinocchio(robot: torsor.Robot) -> "pin.Model":
    """The same tree: each joint's frame is that of its link, moved to a point of the joint's axis."""
    model, ids, points = pin.Model(), {robot.base.name: 0}, {robot.base.name: np.zeros(3)}
    model.gravity.linear = robot.gravity
    for link, joint in zip(robot.links, robot.joints, strict=True):
        kind = pin.JointModelRevoluteUnaligned if joint.type == "revolute" else pin.JointModelPrismaticUnaligned
        R, p = joint.placement[:3, :3], joint.placement[:3, 3]
        placement = pin.SE3(R, p + R @ joint.point - points[joint.parent])
        k = model.addJoint(ids[joint.parent], kind(*joint.axis), placement, joint.name)
        model.appendBodyToJoint(k, pin.Inertia(link.mass, link.com - joint.point, link.inertia), pin.SE3.Identity())
        ids[link.name], points[link.name] = k, joint.point
    return model


@pytest.mark.parametrize("kind, contact", [("weld", "CONTACT_6D"), ("spherical", "CONTACT_3D")])
def test_accelerations_are_pinocchios(kind: str, contact: str) -> None:
    robot, q = closed_chain(kind)
    robot = robot.with_active(robot.coordinate_names).to(device="casadi")  # as Pinocchio does, all are driven
    v, _, _, _, _ = state(robot, q)
    tau = np.random.default_rng(7).normal(size=robot.nv)
    model = as_pinocchio(robot)
    frame, joint = robot.frames[[each.name for each in robot.frames].index("end")], robot.joints[-1]
    anchor = robot.pose(q, "anchor")
    end = pin.SE3(frame.pose[:3, :3], frame.pose[:3, 3] - joint.point)
    loop = pin.RigidConstraintModel(
        getattr(pin.ContactType, contact), model, model.njoints - 1, end, 0, pin.SE3(anchor[:3, :3], anchor[:3, 3])
    )
    loops, room = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    loops.append(loop)
    room.append(loop.createData())
    data, settings = model.createData(), pin.ProximalSettings(1e-14, 1e-12, 100)
    pin.initConstraintDynamics(model, data, loops, room)
    expected = pin.constraintDynamics(model, data, q, v, tau, loops, room, settings)
    found = robot.closed.forward_dynamics(q, v, tau, coordinates="all")
    close(found, expected)
