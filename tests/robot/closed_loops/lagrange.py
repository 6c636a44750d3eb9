"""A reference independent of Torsor: Lagrange's equations with multipliers, from positions of bodies in the world.

Of a robot only its description is read: placements, axes, masses, springs, motors, loops. Poses come from Rodrigues'
formula, equations of motion from CasADi's derivatives of energies, closure from origins and axes in the world with all
its redundant equations, and least squares finds the rest.
"""

from functools import cached_property

import casadi as ca
import numpy as np

import torsor
from torsor import Coupling, Wheel
from torsor.mechanism import ends_of


def turn(axis: np.ndarray, angle: ca.SX) -> ca.SX:
    K = ca.skew(ca.SX(axis))
    return ca.SX.eye(3) + ca.sin(angle) * K + (1 - ca.cos(angle)) * K @ K


def axial(S: ca.SX) -> ca.SX:
    return ca.vertcat(S[2, 1] - S[1, 2], S[0, 2] - S[2, 0], S[1, 0] - S[0, 1]) / 2


class Lagrangian:
    """The robot near positions q: coordinates e are those of the joints, and of a free base steps and angles from q."""

    def __init__(self, robot: torsor.Robot, q: np.ndarray):
        self.robot, n = robot, robot.nv
        self.e, self.de, self.dde = ca.SX.sym("e", n), ca.SX.sym("de", n), ca.SX.sym("dde", n)
        self.start = np.array(
            [
                q[robot.position_names.index(name)] if name in robot.position_names else 0
                for name in robot.coordinate_names
            ]
        )
        self.poses, self.rates = {robot.base.name: (ca.SX.eye(3), ca.SX.zeros(3, 1))}, []
        for joint, at in zip(robot.joints, robot.coordinates, strict=True):
            R, p = self.poses[joint.parent]
            R, p = R @ joint.placement[:3, :3], p + R @ joint.placement[:3, 3]
            x, dx = self.e[at.v], self.de[at.v]
            if joint.type == "free":
                R0 = torsor.spatial.from_quaternion(q[at.q][3:] / np.linalg.norm(q[at.q][3:]))
                own = R0 @ turn([1, 0, 0], x[3]) @ turn([0, 1, 0], x[4]) @ turn([0, 0, 1], x[5])
                R, p = R @ own, p + R @ (q[at.q][:3] + x[:3])
                self.rates.append(ca.vertcat(axial(own.T @ self.rate(own)), own.T @ dx[:3]))
            elif joint.type == "revolute":
                own = turn(joint.axis, x + joint.offset)
                R, p = R @ own, p + R @ (joint.point - own @ joint.point)
                self.rates.append(dx)
            else:
                p = p + R @ (joint.axis * (x + joint.offset))
                self.rates.append(dx)
            self.poses[joint.child] = R, p
        for frame in robot.frames:
            R, p = self.poses[frame.link]
            self.poses[frame.name] = R @ frame.pose[:3, :3], p + R @ frame.pose[:3, 3]
        motors = [robot.coordinate_names.index(f"{joint.name}/motor") for joint in robot.elastic]
        self.v = ca.vertcat(*self.rates, *(self.de[k] for k in motors))

    def rate(self, X: ca.SX) -> ca.SX:
        return ca.reshape(ca.jtimes(ca.vec(X), self.e, self.de), X.shape)

    def spin(self, name: str) -> ca.SX:
        R, _ = self.poses[name]
        return axial(R.T @ self.rate(R))

    def _driving(self, joint) -> int:
        name = f"{joint.name}/motor" if joint.is_elastic else joint.name
        return self.robot.coordinate_names.index(name)

    @cached_property
    def kinetic(self) -> ca.SX:
        T = ca.SX(0)
        for link in self.robot.links:
            R, p = self.poses[link.name]
            c, w = self.rate(p + R @ link.com), self.spin(link.name)
            T += link.mass * ca.dot(c, c) / 2 + w.T @ link.inertia @ w / 2
        for joint in self.robot.joints:
            if joint.motor is not None:  # its energy when it does not spin is the carrier's
                fast = joint.motor.ratio * self.de[self._driving(joint)]
                w = self.spin(joint.motor.carrier)
                T += joint.motor.inertia * (fast * ca.dot(joint.motor.axis, w) + fast**2 / 2)
        return T

    @cached_property
    def potential(self) -> ca.SX:
        U = ca.SX(0)
        for link in self.robot.links:
            R, p = self.poses[link.name]
            U -= link.mass * ca.dot(self.robot.gravity, p + R @ link.com)
        for joint in self.robot.joints:
            if joint.spring is not None:
                x = self.e[self.robot.coordinate_names.index(joint.name)]
                U += joint.spring.stiffness * (x - joint.spring.rest) ** 2 / 2
            if joint.is_elastic:
                x = self.e[self._driving(joint)] - self.e[self.robot.coordinate_names.index(joint.name)]
                U += joint.motor.stiffness * x**2 / 2
        return U

    @cached_property
    def friction(self) -> ca.SX:
        """What friction and dampers take of each coordinate; joints with friction have one coordinate here."""
        taken = ca.SX.zeros(self.robot.nv, 1)
        for joint in self.robot.joints:
            if joint.type == "free":
                continue
            k = self.robot.coordinate_names.index(joint.name)
            rate, damping = self.de[k], joint.spring.damping if joint.spring is not None else 0.0
            taken[k] += (float(np.sum(joint.viscous)) + damping) * rate
            if np.any(joint.coulomb):
                taken[k] += float(np.sum(joint.coulomb)) * ca.tanh(rate / joint.smooth)
            if joint.is_elastic:
                m = self._driving(joint)
                force = joint.motor.damping * (self.de[m] - rate)
                taken[m], taken[k] = taken[m] + force, taken[k] - force
        return taken

    @cached_property
    def closure(self) -> ca.SX:
        rows = [ca.SX.zeros(0, 1)]
        for loop in self.robot.loops:
            if isinstance(loop, Coupling):
                names = self.robot.coordinate_names
                rows.append(sum(c * self.e[names.index(each)] for each, c in loop.coefficients.items()) - loop.offset)
                continue
            if isinstance(loop, Wheel):
                continue
            (Ra, pa), (Rb, pb) = self.poses[loop.a], self.poses[loop.b]
            apart, z, zb = pb - pa, Ra[:, 2], Rb[:, 2]
            parallel, aligned = ca.cross(z, zb), sum((ca.cross(Ra[:, k], Rb[:, k]) for k in range(3)), start=0)
            rows += {
                "weld": [apart, aligned],
                "revolute": [apart, parallel],
                "prismatic": [ca.cross(z, apart), aligned],
                "cylindrical": [ca.cross(z, apart), parallel],
                "universal": [apart, ca.dot(z, zb)],
                "spherical": [apart],
                "planar": [ca.dot(z, apart), parallel],
                "rod": [ca.dot(apart, apart) - loop.length**2],
            }[loop.kind]
        return ca.vertcat(*rows)

    @cached_property
    def constraints(self) -> ca.SX:
        """The matrix A of A de = 0: the rates of closure, and velocities at the contact points of wheels."""
        rows = [ca.jacobian(self.closure, self.e)]
        for wheel in (loop for loop in self.robot.loops if isinstance(loop, Wheel)):
            ground, frame = (self.poses[name] for name in ends_of(self.robot, wheel))
            n, u = ground[0][:, 2], frame[0][:, 2]
            up = n if wheel.kind in ("ball", "skid") else n - ca.dot(n, u) * u
            contact = frame[1] - wheel.radius * up / ca.norm_2(up)
            ahead = ca.cross(u, n) / ca.norm_2(ca.cross(u, n))
            slip = self.material(frame, contact) - self.material(ground, contact)
            directions = {
                "wheel": [n, ahead, ca.cross(n, ahead)],
                "omni": [n, ca.cos(wheel.roller) * ahead + ca.sin(wheel.roller) * ca.cross(n, ahead)],
                "edge": [n, ca.cross(n, ahead)],
                "ball": [n, ground[0][:, 0], ground[0][:, 1]],
                "skid": [n],
            }[wheel.kind]
            rows += [ca.jacobian(ca.dot(d, slip), self.de) for d in directions]
        return ca.vertcat(*rows)

    def material(self, pose: tuple[ca.SX, ca.SX], point: ca.SX) -> ca.SX:
        """Return the velocity of the point of a body, at a pose, that is at a point of the world."""
        R, p = pose
        return self.rate(p) + self.rate(R) @ (R.T @ (point - p))

    def external_force(self, external: np.ndarray) -> ca.SX:
        """Generalised forces of wrenches at the links' origins, in their axes: the power by the rates."""
        power = ca.SX(0)
        for link, wrench in zip(self.robot.links, external, strict=True):
            R, p = self.poses[link.name]
            power += ca.dot(wrench[:3], self.spin(link.name)) + ca.dot(R @ wrench[3:], self.rate(p))
        return ca.gradient(power, self.de)

    def _at(self, v: np.ndarray, *values: ca.SX) -> list[np.ndarray]:
        """Numbers of expressions, at the positions and the velocities v of Torsor's kind."""
        B = ca.Function("B", [self.e], [ca.jacobian(self.v, self.de)])(self.start).full()
        found = ca.Function("at", [self.e, self.de], list(values))(self.start, np.linalg.solve(B, v))
        return [each.full() for each in (found if isinstance(found, tuple) else (found,))]

    def accelerations(self, v: np.ndarray, tau: np.ndarray, external: np.ndarray | None = None) -> np.ndarray:
        """Return the rates of Torsor's velocities (nv,) that forces (nv,) cause, v being all velocities."""
        e, de = self.e, self.de
        momentum, B = ca.gradient(self.kinetic, de), ca.jacobian(self.v, de)
        rest = self.rate(momentum) - ca.gradient(self.kinetic - self.potential, e) + self.friction
        if external is not None:
            rest = rest - self.external_force(external)
        A = self.constraints
        drift = self.rate(A) @ de
        M, rest, A, drift, B, B_rate = self._at(v, ca.jacobian(momentum, de), rest, A, drift, B, self.rate(B) @ de)
        system = np.block([[M, A.T], [A, np.zeros((len(A), len(A)))]])
        right = np.concatenate([B.T @ tau - rest[:, 0], -drift[:, 0]])
        found = np.linalg.lstsq(system, right, rcond=1e-12)[0][: len(M)]
        return B @ found + B_rate[:, 0]

    def power(self, v: np.ndarray, a: np.ndarray) -> float:
        """Return the rate of energy, and what friction takes, at the accelerations a."""
        energy = self.kinetic + self.potential
        B = ca.jacobian(self.v, self.de)
        B, B_rate = self._at(v, B, self.rate(B) @ self.de)
        dde = np.linalg.solve(B, a - B_rate[:, 0])
        by_e, by_de, lost, de = self._at(
            v, ca.jacobian(energy, self.e), ca.jacobian(energy, self.de), ca.dot(self.friction, self.de), self.de
        )
        return float((by_e @ de + by_de @ dde + lost)[0, 0])
