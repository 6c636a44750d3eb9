"""Compare a Gough-Stewart platform with Pinocchio models of the same mechanism; print Markdown tables.

Both run in one process on one core, after a check that they agree. Pinocchio has no parallel robots: the tree of legs
and platform is closed by 3D constraints at the six balls. Pinocchio takes the positions, velocities and accelerations
of all joints. Torsor takes those of the platform and computes those of the legs, with and without given leg positions
q. Operation counts do not depend on the machine.
"""

import os
from collections.abc import Callable
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # one core for NumPy too

import numpy as np
import pinocchio as pin

import torsor
from bench.measure import best

STATES = 4096


def states(robot: torsor.ParallelRobot, count: int = STATES) -> dict[str, np.ndarray]:
    """Return random motions of the platform, the corresponding leg motions, and the drive forces."""
    rng = np.random.default_rng(0)
    pose = robot.carriage.integrate(robot.home, 0.08 * rng.normal(size=(count, 6)))
    twist, acceleration = rng.normal(size=(2, count, 6))
    q = robot.inverse_kinematics(pose)
    v, a = robot.leg_accelerations(pose, twist, acceleration)
    forces = robot.inverse_dynamics(pose, twist, acceleration)
    return {"pose": pose, "twist": twist, "acceleration": acceleration, "q": q, "v": v, "a": a, "forces": forces}


class Peer:
    """The same mechanism in Pinocchio: a free platform and the legs, closed by constraints at the balls."""

    def __init__(self, robot: torsor.ParallelRobot):
        tree, self.robot = robot.as_robot(), robot
        self.model: Any = pin.Model()
        self.model.gravity.linear = tree.gravity
        joints: dict[str, int] = {tree.base.name: 0}
        for link, joint in zip(tree.links, tree.joints, strict=True):
            place, axis = pin.SE3(joint.placement), tuple(joint.axis)
            if joint.type == "free":
                kind: Any = pin.JointModelFreeFlyer()
            elif joint.type == "prismatic":
                kind = pin.JointModelPZ()
            else:
                kind = {(1.0, 0.0, 0.0): pin.JointModelRX, (0.0, 1.0, 0.0): pin.JointModelRY}[axis]()
            number = self.model.addJoint(joints[joint.parent], kind, place, joint.name)
            self.model.appendBodyToJoint(number, pin.Inertia(link.mass, link.com, link.inertia), pin.SE3.Identity())
            joints[link.name] = number
        self.data = self.model.createData()
        numbers = [self.model.getJointId(name) for name in tree.joint_names]
        self.order_q = np.concatenate([np.arange(*self._span(self.model.joints[k], "q")) for k in numbers])
        self.order_v = np.concatenate([np.arange(*self._span(self.model.joints[k], "v")) for k in numbers])
        self.constraints: Any = pin.StdVec_RigidConstraintModel()
        for loop in tree.loops:
            a, b = tree.place(loop.a), tree.place(loop.b)
            ends = [(joints[tree.links[each.link].name], pin.SE3(each.pose)) for each in (a, b)]
            model = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, self.model, *ends[0], *ends[1])
            self.constraints.append(model)
        self.constraint_data: Any = pin.StdVec_RigidConstraintData()
        for each in self.constraints:
            self.constraint_data.append(each.createData())
        pin.initConstraintDynamics(self.model, self.data, self.constraints, self.constraint_data)
        self.settings = pin.ProximalSettings(1e-12, 0.0, 1)
        self.pool = pin.ModelPool(self.model, 1)
        names = list(tree.coordinate_names)
        self.active = self.order_v[[names.index(name) for name in tree.active]]
        self.dependent = np.setdiff1d(np.arange(self.model.nv), self.active)

        # At each ball, what the joints of its leg do less what the platform does.
        of_legs = [[name.startswith(f"{leg.name}/") for name in names] for leg in robot.legs]
        of_platform = np.array([name.startswith("platform/") for name in names])
        self.signs = np.empty((len(robot.legs), 1, self.model.nv))
        self.signs[..., self.order_v] = (np.array(of_legs, dtype=float) - of_platform)[:, None]

    @staticmethod
    def _span(joint: Any, letter: str) -> tuple[int, int]:
        first, count = getattr(joint, f"idx_{letter}"), getattr(joint, f"n{letter}")
        return first, first + count

    def load(self, motion: dict[str, np.ndarray]) -> None:
        """Convert the states; a free joint of Pinocchio has the linear part first."""
        swapped = [3, 4, 5, 0, 1, 2]
        q = np.concatenate([motion["pose"], motion["q"]], axis=-1)
        v, a = (
            np.concatenate([motion[platform][:, swapped], motion[legs]], axis=-1)
            for platform, legs in (("twist", "v"), ("acceleration", "a"))
        )
        self.q, self.v, self.a = np.empty_like(q), np.empty_like(v), np.empty_like(a)
        self.q[:, self.order_q], self.v[:, self.order_v], self.a[:, self.order_v] = q, v, a
        self.tau = np.zeros_like(v)
        self.tau[:, self.active] = motion["forces"]
        T = self.robot.carriage.pose(motion["pose"], "platform")
        self.balls = np.stack([(T @ leg.at)[:, :3, 3] for leg in self.robot.legs], axis=1)
        self.columns = [np.asfortranarray(each.T) for each in (self.q, self.v, self.a)]

    def inverse(self) -> np.ndarray:
        """Return the forces of the drives: inverse dynamics of the tree minus the constraint forces.

        Pinocchio computes the recursion over the whole batch in C++. The Jacobians of all joints take one call per
        state. NumPy computes the rest, including linear systems, for the whole batch, because Pinocchio offers nothing
        faster. (``getConstraintsJacobian`` of version 4.1 omits the first joint of each leg.)
        """
        model, data, states = self.model, self.data, len(self.q)
        tau = pin.rneaInParallel(1, self.pool, *self.columns).T
        J = np.empty((states, 6, model.nv))
        for k, q in enumerate(self.q):
            J[k] = pin.computeJointJacobians(model, data, q)
        w, v = J[:, None, 3:], J[:, None, :3]
        velocity = v + np.cross(w, self.balls[..., None], axis=2)
        A = (velocity * self.signs).reshape(states, -1, model.nv)
        held = np.linalg.solve(A[:, :, self.dependent].swapaxes(1, 2), tau[:, self.dependent, None])
        found: np.ndarray = tau[:, self.active] - (A[:, :, self.active].swapaxes(1, 2) @ held)[..., 0]
        return found

    def direct(self) -> np.ndarray:
        """Return the accelerations of all joints, by Pinocchio's constrained dynamics."""
        arguments = self.constraints, self.constraint_data, self.settings
        found = np.empty_like(self.v)
        for k, (q, v, tau) in enumerate(zip(self.q, self.v, self.tau, strict=True)):
            found[k] = pin.constraintDynamics(self.model, self.data, q, v, tau, *arguments)
        return found


def row(title: str, own: Callable[[], Any], peer: float, count: int) -> None:
    """Print one time (s) with that of the peer."""
    seconds = best(own)
    print(f"| {title} | {1e6 * seconds / count:.3f} | {1e6 * peer / count:.1f} | {peer / seconds:.0f} |", flush=True)


def main() -> None:
    """Print the tables."""
    robot = torsor.library.gough_stewart()
    motion, peer = states(robot), Peer(robot)
    peer.load(motion)
    pose, twist, acceleration = (motion[name] for name in ("pose", "twist", "acceleration"))
    q, forces = motion["q"], motion["forces"]
    off = np.abs(peer.inverse() - forces).max() / np.abs(forces).max()
    accelerations = np.concatenate([acceleration[:, [3, 4, 5, 0, 1, 2]], motion["a"]], axis=-1)
    far = np.abs(peer.direct()[:, peer.order_v] - accelerations).max() / np.abs(accelerations).max()
    print(f"largest difference between both: inverse {off:.1e}, direct {far:.1e} of the largest\n")
    if max(off, far) > 1e-8:
        raise SystemExit("they do not agree")
    inverse, direct = best(peer.inverse, least=3), best(peer.direct, least=3)
    print(f"| Gough-Stewart, {STATES} states, µs each | Torsor | Pinocchio {pin.__version__} | times faster |")
    print("|---|---|---|---|")
    row("inverse dynamics from the pose", lambda: robot.inverse_dynamics(pose, twist, acceleration), inverse, STATES)
    row("the same, legs' q given", lambda: robot.inverse_dynamics(pose, twist, acceleration, q=q), inverse, STATES)
    row("direct dynamics from the pose", lambda: robot.forward_dynamics(pose, twist, forces), direct, STATES)
    row("the same, legs' q given", lambda: robot.forward_dynamics(pose, twist, forces, q=q), direct, STATES)
    print("\n| additions and multiplications | leg by leg, from the pose | legs' q given | cut joints |")
    print("|---|---|---|---|")
    for each in (robot, torsor.library.delta(), torsor.library.three_rrr()):
        tree = each.as_robot()
        for name in ("inverse_dynamics", "forward_dynamics"):
            own = each.operation_count(name).arithmetic if each.has_closed_form else "-"
            given = each.operation_count(name, positions=True).arithmetic
            generic = tree.operation_count(f"constrained_{name}").arithmetic
            print(f"| {each.name}, {name.replace('_', ' ')} | {own} | {given} | {generic} |", flush=True)


if __name__ == "__main__":
    main()
