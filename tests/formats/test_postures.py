"""Postures: named configurations survive edits and files, and are the keyframes of MJCF."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import library
from torsor.view.scene import home


@pytest.mark.parametrize("suffix", ["toml", "xml"])
def test_files_keep_postures(tmp_path: Path, suffix: str) -> None:
    if suffix == "xml":
        pytest.importorskip("mujoco")
    types = ("revolute", "spherical", "free", "planar", "prismatic")
    robot = library.random_tree(8, 5, types=types, extras=False)
    rng = np.random.default_rng(1)
    first, second = (robot.integrate(robot.neutral(), rng.normal(size=robot.nv)) for _ in range(2))
    robot = robot.with_posture("first", first).with_posture("second one", second)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*free joints in link axes", category=torsor.ModelWarning)
        robot.save(tmp_path / f"robot.{suffix}")
    again = torsor.load(tmp_path / f"robot.{suffix}")
    assert list(again.postures) == ["first", "second one"]
    for q, name in ((first, "first"), (second, "second one")):
        for link in robot.link_names:
            there = again.pose(again.postures[name], link)
            np.testing.assert_allclose(there, robot.pose(q, link), rtol=0, atol=1e-12)


def test_keyframes_of_mujoco_are_postures(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    path.write_text("""<mujoco><worldbody><body name="base"><freejoint name="root"/><geom size="0.1"/>
      <body name="arm" pos="0.2 0 0"><joint name="pin" ref="20"/><geom size="0.1" pos="0.1 0 0"/>
      <body name="hand" pos="0.3 0 0"><joint name="ball" type="ball"/><geom size="0.1" pos="0.1 0.1 0"/></body></body>
      </body></worldbody><keyframe><key name="home" qpos="1 2 3 0.8 0.6 0 0  0.7  0.6 0 0.8 0"/><key/></keyframe>
      </mujoco>""")
    robot, model = torsor.load(path), mujoco.MjModel.from_xml_path(str(path))
    assert list(robot.postures) == ["home", "key1", "default"]  # qpos0: the reference of the pin
    data = mujoco.MjData(model)
    for k, q in enumerate(robot.postures.values()):
        mujoco.mj_resetDataKeyframe(model, data, k) if k < 2 else mujoco.mj_resetData(model, data)
        mujoco.mj_forward(model, data)
        for link in ("base", "arm", "hand"):
            np.testing.assert_allclose(robot.pose(q, link)[:3, 3], data.body(link).xpos, rtol=0, atol=1e-14)
            np.testing.assert_allclose(robot.pose(q, link)[:3, :3].ravel(), data.body(link).xmat, rtol=0, atol=1e-14)


def test_bodies_of_mujoco_start_where_their_file_puts_them(tmp_path: Path) -> None:
    """A box that falls freely from 1 m is at 1 - g t^2 / 2, and turned as in the file."""
    mujoco = pytest.importorskip("mujoco")
    path, again = tmp_path / "scene.xml", tmp_path / "again.xml"
    path.write_text("""<mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body name="box" pos="0.2 0 1" quat="0.8 0.6 0 0"><freejoint name="root"/><geom size="0.1"/></body>
      </worldbody></mujoco>""")
    robot = torsor.load(path)
    assert robot.postures["default"].tolist() == [0.2, 0, 1, 0.6, 0, 0, 0.8]
    fall = torsor.simulate(robot, duration=0.2)
    np.testing.assert_allclose(fall.q[-1], [0.2, 0, 1 - 9.81 * 0.02, 0.6, 0, 0, 0.8], rtol=0, atol=1e-12)
    assert home(robot)[2] == 1.0
    robot.save(again)
    np.testing.assert_allclose(mujoco.MjModel.from_xml_path(str(again)).qpos0, [0.2, 0, 1, 0.8, 0.6, 0, 0], atol=1e-15)
    assert torsor.load(again).postures["default"].tolist() == robot.postures["default"].tolist()


def test_a_floating_base_of_mujoco_starts_where_its_file_puts_it(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    (tmp_path / "arm.xml").write_text(
        '<mujoco><worldbody><body name="arm" pos="0 0 0.5"><geom size="0.1"/></body></worldbody></mujoco>'
    )
    robot = torsor.load(tmp_path / "arm.xml", base="floating")
    assert robot.postures["default"].tolist() == [0, 0, 0.5, 0, 0, 0, 1]
    assert not torsor.load(tmp_path / "arm.xml").postures  # neutral


def test_a_follower_has_its_place_in_a_keyframe(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    link = [torsor.Link("base"), *(torsor.Link(name, 1.0, (0.1, 0, 0), 0.01 * np.eye(3)) for name in "ab")]
    joints = [
        torsor.Joint("one", "revolute", "base", "a"),
        torsor.Joint("two", "revolute", "a", "b", coordinate="one", ratio=-2.0, offset=0.1),
    ]
    robot = torsor.build("pair", link, joints).with_posture("home", [0.3])
    robot.save(tmp_path / "pair.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "pair.xml"))
    np.testing.assert_allclose(model.key_qpos, [[0.3, -0.5]], rtol=0, atol=1e-15)


def test_edits_keep_the_positions_that_still_exist() -> None:
    robot = library.two_link().with_posture("home", [0.3, -1.2])
    assert robot.with_gravity((0, 0, 0)).postures["home"].tolist() == [0.3, -1.2]
    assert robot.fix("joint1", 0.0).postures["home"].tolist() == [-1.2]
    both = library.two_link().attach(robot, "link2", prefix="other/")
    assert both.postures["other/home"].tolist() == [0, 0, 0.3, -1.2]
    assert dict(robot.without_posture("home").postures) == {}
    with pytest.raises(ValueError, match="read-only"):
        robot.postures["home"][0] = 1.0


def test_mistakes_are_named(tmp_path: Path) -> None:
    robot = library.two_link()
    with refused(argument="q", where="posture 'home'"):
        robot.with_posture("home", [0.3])
    with refused(value="home", allowed="none"):
        robot.without_posture("home")
    path = tmp_path / "robot.toml"
    robot.with_posture("home", [0.3, 0.4]).save(path)
    path.write_text(path.read_text().replace("0.3", '"0.3"'))
    with refused(argument="joint1", where="posture 'home'"):
        torsor.load(path)
    free = torsor.Robot.of(torsor.mechanism.build("block", [torsor.Link("body", 1.0)], [], base="floating"))
    with refused(value="root"):
        free.with_posture("home", np.zeros(7))


def test_a_quaternion_of_zeros_in_a_file_is_refused_with_its_posture(tmp_path: Path) -> None:
    free = torsor.Robot.of(torsor.mechanism.build("block", [torsor.Link("body", 1.0)], [], base="floating"))
    path = tmp_path / "block.toml"
    free.with_posture("home", [0, 0, 0, 0, 0, 0, 0.25]).save(path)
    path.write_text(path.read_text().replace("0.25", "0.0"))
    with refused(value="root", where="block.toml: posture 'home'", allowed="nonzero"):
        torsor.load(path)


def test_postures_of_the_same_name_become_one_with_the_positions_of_both() -> None:
    arm = library.two_link().with_posture("home", [0.3, -1.2]).with_posture("tool/home", [0.1, 0.2])
    both = arm.attach(library.two_link().with_posture("home", [0.5, 0.6]), "link2", prefix="tool/")
    assert both.postures["home"].tolist() == [0.3, -1.2, 0, 0]
    assert both.postures["tool/home"].tolist() == [0.1, 0.2, 0.5, 0.6]


def test_postures_are_pickled_and_cannot_be_changed() -> None:
    robot = library.two_link().with_posture("home", [0.3, -1.2])
    again = pickle.loads(pickle.dumps(robot.postures))
    assert list(again) == ["home"] and again["home"].tolist() == [0.3, -1.2]
    with pytest.raises(TypeError, match="item assignment"):
        robot.postures["other"] = np.zeros(2)
    with refused(value=[1], allowed="'home'"):
        robot.without_posture([1])


def test_a_thin_mesh_is_written_so_that_mujoco_reads_it(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    sheet = tmp_path / "sheet.obj"
    sheet.write_text("v 0 0 0\nv 2 0 0\nv 0 1 0\nv 2 1 0\nf 1 3 2\nf 2 3 4\n")
    look = torsor.mechanism.Visual("mesh", (1.0, 1.0, 1.0), np.eye(4), mesh="sheet.obj", path=str(sheet))
    links = [torsor.Link("base"), torsor.Link("arm", 1.0, (0.1, 0, 0), 0.01 * np.eye(3), (look,))]
    robot = torsor.build("fan", links, [torsor.Joint("pin", "revolute", "base", "arm")])
    robot.save(tmp_path / "fan.xml")
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "fan.xml")).nmesh == 1
    assert torsor.load(tmp_path / "fan.xml").links[0].visuals[0].path == str(sheet)


def test_unknown_positions_and_names_used_twice_are_errors_in_files(tmp_path: Path) -> None:
    path = tmp_path / "arm.toml"
    library.two_link().with_posture("home", [0.1, 0.2]).save(path)
    text = path.read_text()
    path.write_text(text.replace('"joint1" = 0.1', '"jiont1" = 0.1'))
    with refused(where="arm.toml: posture 'home'", allowed="joint1, joint2"):
        torsor.load(path)
    path.write_text(text + text[text.index("[[posture") :])
    with refused(what="the name is used twice"):
        torsor.load(path)


def test_a_joint_of_another_type_is_neutral_in_postures() -> None:
    arm = library.planar_chain(2).with_posture("home", [1.5, 0.7])
    with warned(what="its positions in postures become neutral"):
        changed = arm.with_joint_type("joint1", "prismatic")
    assert changed.postures["home"].tolist() == [0.0, 0.7]
