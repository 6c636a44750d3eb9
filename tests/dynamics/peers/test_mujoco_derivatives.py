"""Derivatives of forces and of reactions agree with MuJoCo's finite differences, for the same files.

MuJoCo differentiates by qpos, qvel and qacc and has the variable first; differences forward and backward make centred
ones. With qvel = A(q) v and qacc = A(q) (a + c(v)) (see ``Twin``), the chain rule leads to the derivatives here.
"""

import numpy as np
import pytest

from torsor.spatial import from_quaternion, skew

mujoco = pytest.importorskip("mujoco")
from .test_mujoco import CASES, Twin, recent

STEP, TOLERANCE = 1e-6, 1e-6


class Felt(Twin):
    """A twin whose MuJoCo model has a sensor of torque and one of force at the origin of every body."""

    def compiled(self, text, assets):
        spec = mujoco.MjSpec.from_string(text, assets=assets)
        self.felt = {}  # body's name: where its sensors are; the files have no others
        for number, body in enumerate(spec.bodies[1:], 1):
            name = body.name or f"body{number}"
            site = body.add_site(name=f"origin of {name}")
            self.felt[name] = slice(6 * (number - 1), 6 * number)
            for kind in (mujoco.mjtSensor.mjSENS_TORQUE, mujoco.mjtSensor.mjSENS_FORCE):
                spec.add_sensor(type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site.name)
        return spec.compile()

    def differences(self, q, v, a):
        """Return (force, sensors), and the derivatives of each by qpos, qvel and qacc, the variable last."""
        self.set(q, v)
        self.data.qacc[:] = self.accelerations(q, v, a)
        mujoco.mj_inverse(self.model, self.data)
        values = self.data.qfrc_inverse.copy(), self.data.sensordata.copy()
        n, total = self.model.nv, 0.0
        for step in (STEP, -STEP):
            force, sensors = np.zeros((3, n, n)), np.zeros((3, n, self.model.nsensordata))
            mujoco.mjd_inverseFD(self.model, self.data, step, False, *force, *sensors, None)
            total = total + np.concatenate([force, sensors], axis=2) / 2
        return *values, *np.split(total.transpose(0, 2, 1), [n], axis=1)

    def chain(self, by, q, v, a):
        """Return derivatives with respect to (q, v, a), given those ``by`` MuJoCo's coordinates."""
        A, turning, c_v = self.velocity_map(q), self.turning_map(q), np.zeros((self.robot.nv, self.robot.nv))
        c = np.linalg.solve(A, self.accelerations(q, v, a))  # a + c(v)
        for joint, at in zip(self.robot.joints, self.robot.coordinates, strict=True):
            if joint.type == "free":
                w, origin = v[at.v][:3], v[at.v][3:]
                c_v[at.v, at.v][3:] = np.hstack([-skew(origin), skew(w)])
        by_q, by_v, by_a = by
        v_q, a_q = (np.stack([turn @ x for turn in turning], axis=1) for x in (v, c))
        return by_q @ A + by_v @ v_q + by_a @ a_q, by_v @ A + by_a @ A @ c_v, by_a @ A

    def turning_map(self, q):
        """Return the derivatives of A by each coordinate, (nv, nv, nv): R of a free joint turns with its body."""
        found = np.zeros((self.robot.nv,) * 3)
        for joint, at in zip(self.robot.joints, self.robot.coordinates, strict=True):
            if joint.type == "free":
                R, start = from_quaternion(q[at.q][3:]), at.v.start
                for k, unit in enumerate(np.eye(3)):
                    found[start + k, start : start + 3, start + 3 : start + 6] = R @ skew(unit)
        return found


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(case))
def felt(request):
    return Felt(*request.param)


def assert_close(found, expected):
    assert found.shape == expected.shape
    scale = max(np.abs(expected).max(initial=0.0), 1.0)  # where all are zero, differences leave 1e-10
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * scale)


@recent
def test_derivatives_of_forces_are_the_differences_of_mujoco(felt):
    for q, v, a in list(felt.states())[:2]:
        force, _, by, _ = felt.differences(q, v, a)
        A = felt.velocity_map(q)
        expected = [A.T @ each for each in felt.chain(by, q, v, a)]
        expected[0] += np.stack([turn.T @ force for turn in felt.turning_map(q)], axis=1)
        for found, each in zip(felt.robot.derivatives.inverse_dynamics(q, v, a), expected, strict=True):
            assert_close(found, each)


@recent
def test_derivatives_of_reactions_are_the_differences_of_mujocos_sensors(felt):
    for q, v, a in list(felt.states())[:2]:
        _, sensors, _, by = felt.differences(q, v, a)
        links = [name for name in felt.robot.link_names if name in felt.felt]
        rows = [felt.robot.link_names.index(name) for name in links]
        expected = felt.chain(by, q, v, a)
        reactions = felt.robot.joint_wrenches(q, v, a)
        found = felt.robot.derivatives.joint_wrenches(q, v, a)
        assert_close(reactions[rows], np.array([sensors[felt.felt[name]] for name in links]))
        for ours, theirs in zip(found, expected, strict=True):
            assert_close(ours[rows], np.array([theirs[felt.felt[name]] for name in links]))
