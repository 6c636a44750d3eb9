"""The human skeleton: its masses, lengths and moments of inertia agree with the tables; its standing posture."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import torsor
from refusals import refused, warned
from torsor.human.body.coordinates import mirror
from torsor.human.body.kernels import shared_model
from torsor.library.anthropometry import BODY_TABLES, Body

BODIES = [(1.741, 73.0, "male"), (1.60, 55.0, "female"), (1.95, 110.0, "male")]


@pytest.mark.parametrize("sex", BODY_TABLES)
def test_mass_fractions_sum_to_one(sex: str) -> None:
    once = ("head", "upper trunk", "middle trunk", "lower trunk")
    rows = BODY_TABLES[sex].rows
    assert sum(row.mass * (1 if name in once else 2) for name, row in rows.items()) == pytest.approx(100.0, abs=0.02)


@pytest.mark.parametrize(("height", "mass", "sex"), BODIES)
def test_fifty_five_coordinates_carry_the_whole_mass(height: float, mass: float, sex: str) -> None:
    body = torsor.library.human(height, mass, sex).to(device="casadi")
    assert body.nv == 55 and body.nq == 55
    assert body.mass == pytest.approx(mass, rel=1e-12)
    still = np.zeros(55)
    tau = body.inverse_dynamics(still, still, still)
    assert tau[:3] == pytest.approx([0.0, 9.81 * mass, 0.0], abs=1e-9 * mass)


@pytest.mark.parametrize(("height", "mass", "sex"), BODIES)
def test_split_segments_preserve_mass_centre_and_inertia(height: float, mass: float, sex: str) -> None:
    """The middle trunk is two links, and so are head and neck; moments are about their common centre of mass."""
    body, table = torsor.library.human(height, mass, sex).to(device="casadi"), Body(height, mass, sex)
    links, q = {link.name: link for link in body.links}, body.neutral()
    for names, segment, above in (
        (("spine1", "spine2"), table["middle trunk"], "spine1"),
        (("neck", "head"), table["head"], "neck"),
    ):
        parts = [links[name] for name in names]
        centres = [(body.pose(q, part.name) @ [*part.com, 1.0])[:3] for part in parts]
        total = sum(part.mass for part in parts)
        centre = sum(part.mass * c for part, c in zip(parts, centres, strict=True)) / total
        foot = body.pose(q, above)[:3, 3]
        assert total == pytest.approx(segment.mass, rel=1e-12)
        assert centre - foot == pytest.approx([0.0, segment.length - segment.centre, 0.0], abs=1e-12)
        moments = np.zeros((3, 3))
        for part, c in zip(parts, centres, strict=True):
            r = c - centre
            moments += part.inertia + part.mass * (r @ r * np.eye(3) - np.outer(r, r))
        np.testing.assert_allclose(moments, segment.inertia, atol=1e-12)


@pytest.mark.parametrize(
    ("height", "mass", "sex"), [BODIES[0], *(pytest.param(*body, marks=pytest.mark.slow) for body in BODIES[1:])]
)
def test_the_standing_posture_is_symmetric_with_the_soles_on_the_ground(height: float, mass: float, sex: str) -> None:
    body = torsor.library.human(height, mass, sex).to(device="casadi")
    q, mirror = body.neutral(), np.diag([-1.0, 1.0, 1.0])
    for name in ("heel", "ball", "toe", "ball_medial", "toe_medial", "wrist", "knuckles"):
        right, left = (body.pose(q, f"{side}_{name}")[:3, 3] for side in ("right", "left"))
        assert left == pytest.approx(mirror @ right, abs=1e-12)
        if name not in ("wrist", "knuckles"):
            assert right[1] == pytest.approx(0.0, abs=1e-12)
    assert 0.9 * height < body.pose(q, "vertex")[1, 3] < 1.1 * height  # segments do not sum to it
    assert abs(body.center_of_mass(q)[0]) < 1e-12


def test_mirrored_motions_have_mirrored_forces() -> None:
    body, rng = torsor.library.human(), np.random.default_rng(0)
    swap, sign = mirror(body.coordinate_names)
    q, v, a = (0.3 * rng.normal(size=55) for _ in range(3))
    tau = body.inverse_dynamics(q, v, a)
    mirrored = body.inverse_dynamics(*((sign * each)[swap] for each in (q, v, a)))
    np.testing.assert_allclose(mirrored, (sign * tau)[swap], atol=1e-10 * np.abs(tau).max())


def test_a_segment_can_be_replaced() -> None:
    heavy = torsor.Link("left_hand", 5.0, [0.0, -0.1, 0.0], 0.01 * np.eye(3))
    body = torsor.library.human(segments={"left_hand": heavy})
    assert body.mass == pytest.approx(73.0 * (1 - 0.0061) + 5.0, rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"height": 0.5}, "height"),
        ({"mass": float("nan")}, "mass"),
        ({"sex": "other"}, "sex"),
        ({"segments": {"tail": torsor.Link("tail")}}, "tail"),
    ],
)
def test_invalid_bodies_raise(settings: dict[str, object], message: str) -> None:
    with refused(message):
        torsor.library.human(**settings)


def test_it_is_saved_and_read_back(tmp_path: Path) -> None:
    body = torsor.library.human()
    body.save(tmp_path / "human.toml")
    again, rng = torsor.load(tmp_path / "human.toml"), np.random.default_rng(1)
    q, v, a = (0.3 * rng.normal(size=55) for _ in range(3))
    np.testing.assert_array_equal(again.inverse_dynamics(q, v, a), body.inverse_dynamics(q, v, a))


def test_pinocchio_reads_the_written_body_with_the_same_forces(tmp_path: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    body, rng = torsor.library.human(), np.random.default_rng(2)
    with warned(what="gravity"):  # a URDF file has none
        body.save(tmp_path / "human.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "human.urdf"))
    model.gravity.linear = body.gravity
    order = [body.coordinate_names.index(name) for name in list(model.names)[1:]]
    q, v, a = (0.3 * rng.normal(size=55) for _ in range(3))
    place = pin.integrate(model, pin.neutral(model), q[order])  # Pinocchio has unlimited angles as points of a circle
    theirs = pin.rnea(model, model.createData(), place, v[order], a[order])
    ours = body.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(theirs, ours[order], atol=1e-10 * np.abs(ours).max())


def test_mujoco_reads_the_written_body_with_the_same_forces(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    body, rng = torsor.library.human(), np.random.default_rng(3)
    body.save(tmp_path / "human.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "human.xml"))
    order = [body.coordinate_names.index(model.joint(k).name) for k in range(model.njnt)]
    q, v, a = (0.3 * rng.normal(size=55) for _ in range(3))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = q[order], v[order], a[order]
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    mujoco.mj_inverse(model, data)
    ours = body.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(data.qfrc_inverse, ours[order], atol=1e-10 * np.abs(ours).max())


def test_wrists_bend_farther_away_from_the_thumb_than_towards_it() -> None:
    """Thumbs of hanging arms point forward: the hand turns back, towards the little finger, by up to 30 degrees."""
    body, q = torsor.library.human(), np.zeros(55)
    for side in ("right", "left"):
        k = body.coordinate_names.index(f"{side}_wrist_deviation")
        assert np.degrees([body.lower[k], body.upper[k]]) == pytest.approx([-20.0, 30.0])
        q[k] = 0.3
        assert body.pose(q, f"{side}_knuckles")[2, 3] < body.pose(q, f"{side}_wrist")[2, 3]


@pytest.mark.parametrize(("name", "more"), [("right_knee_flexion", {"offset": 0.3}), ("tilt", {"lower": -1.0})])
def test_shared_kernels_have_the_dynamics_of_any_body(name: str, more: dict[str, float]) -> None:
    usual = torsor.library.human()
    joints = tuple(replace(each, **more) if each.name == name else each for each in usual.joints)
    body = replace(usual, joints=joints)
    model, numbers = shared_model(body)
    made = model.at([numbers[each].lower for each in model.names])
    rng = np.random.default_rng(0)
    state = [0.3 * rng.normal(size=55) for _ in range(3)]
    np.testing.assert_allclose(made.inverse_dynamics(*state), body.inverse_dynamics(*state), rtol=0, atol=1e-9)
    assert (model is shared_model(usual)[0]) == (more == {"lower": -1.0})


@pytest.mark.parametrize(("side", "sign"), [("right", 1.0), ("left", -1.0)])
def test_rotations_are_cardan_sequences_and_joint_torques_are_components_about_their_axes(
    side: str, sign: float
) -> None:
    """Flexion, adduction, rotation at hip and shoulder; rotation, tilt, obliquity of the pelvis (x left, z forward)."""
    body = torsor.library.human()
    q = np.random.default_rng(1).uniform(-0.5, 0.5, body.nq)
    angles = dict(zip(body.coordinate_names, q, strict=True))

    def turned(link: str) -> np.ndarray:
        return np.asarray(body.pose(q, link))[:3, :3]

    def cardan(axes: str, *values: float) -> np.ndarray:
        return np.asarray(Rotation.from_euler(axes, values).as_matrix())

    pelvis = turned("pelvis")
    np.testing.assert_allclose(pelvis, cardan("YXZ", *(angles[name] for name in ("yaw", "tilt", "list"))), atol=1e-14)
    for above, below, names in (
        ("pelvis", "thigh", ("hip_flexion", "hip_adduction", "hip_rotation")),
        (f"{side}_clavicle", "upper_arm", ("shoulder_flexion", "shoulder_adduction", "shoulder_rotation")),
        (f"{side}_shank", "foot", ("ankle_flexion", "ankle_inversion")),
    ):
        values = [way * angles[f"{side}_{name}"] for way, name in zip((-1.0, sign, sign), names, strict=False)]
        expected = cardan("XZY"[: len(names)], *values)
        np.testing.assert_allclose(turned(above).T @ turned(f"{side}_{below}"), expected, atol=1e-14)

    # A moment on the foot is balanced by its components along the flexion axis of the pelvis, the axis between, and the
    # long axis of the thigh, which are not orthogonal.
    moment = np.array([30.0, -20.0, 50.0])
    still = np.zeros(body.nv)
    loaded, free = (
        body.inverse_dynamics(q, still, still, external)
        for external in (body.wrench_at(q, f"{side}_foot", moment=moment), None)
    )
    at = body.coordinate_names.index(f"{side}_hip_flexion")
    between = pelvis @ cardan("X", -angles[f"{side}_hip_flexion"])
    axes = np.array([-pelvis[:, 0], sign * between[:, 2], sign * turned(f"{side}_thigh")[:, 1]])
    np.testing.assert_allclose((loaded - free)[at : at + 3], -axes @ moment, atol=1e-11)
