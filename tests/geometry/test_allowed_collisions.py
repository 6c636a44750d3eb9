"""Which shapes are checked by default: joints, files, masks and samples; the matrix is read, edited and saved."""

from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import Shape
from torsor.geometry import AllowedCollisions, contact_points, enclosing_capsule, read_srdf
from torsor.spatial import make_pose

BALL = Shape("sphere", (0.05,))


def chain(n: int, shape: Shape = BALL) -> torsor.Robot:
    robot = torsor.library.planar_chain(n).to(device="casadi")
    for name in (robot.base.name, *robot.link_names):
        robot = robot.with_shapes(name, [shape])
    return robot


def test_joined_links_and_links_that_never_or_always_overlap_are_left_out() -> None:
    low = Shape("sphere", (0.05,), make_pose(p=[0.0, 0.0, -5.0]))
    wide = Shape("sphere", (4.0,), make_pose(p=[0.0, 0.0, 0.0]))
    robot = chain(4, Shape("sphere", (0.3,))).with_shapes("link2", [low]).with_shapes("link3", [wide])
    matrix = robot.shapes.allowed(samples=200)
    assert matrix.reason("link1", "link2") == "adjacent"
    assert matrix.reason("link4", "link2") == "never"
    assert matrix.reason("base", "link3") == "always"
    assert matrix.reason("base", "link4") is None  # the chain can fold, and mostly does not
    assert matrix.reasons == robot.shapes.allowed(samples=200).reasons
    assert {
        tuple(name.split("/")[0] for name in pair) for pair in robot.shapes.distances(np.zeros(4), matrix).pairs
    } == {
        ("base", "link4"),
        ("link1", "link4"),
    }


def test_a_matrix_is_edited_and_saved_as_srdf(tmp_path: Path) -> None:
    robot = chain(3)
    matrix = robot.shapes.allowed(samples=0).allow("base", "link3").check("base", "link1")
    assert len(robot.shapes.distances(np.zeros(3), matrix).pairs) == 3
    matrix.save(tmp_path / "chain.srdf")
    assert '<disable_collisions link1="base" link2="link3" reason="User"' in (tmp_path / "chain.srdf").read_text()
    again = robot.with_allowed_collisions(tmp_path / "chain.srdf")
    assert again.allowed_collisions == tuple((*pair, why) for pair, why in matrix.reasons.items())
    assert again.shapes.allowed(samples=0).reason("base", "link3") == "user"
    assert matrix.matrix().sum() == 4 + 2 * 3
    with refused(value="hand"):
        matrix.allow("base", "hand")
    with refused(value=".txt"):
        matrix.save(tmp_path / "chain.txt")
    (tmp_path / "bad.srdf").write_text("<robot><disable_collisions link1='a'/></robot>")
    with refused(where="line 1", what="<disable_collisions> needs link1 and link2"):
        read_srdf(tmp_path / "bad.srdf")
    with refused(value="hand"):
        robot.with_allowed_collisions([("base", "hand", "user")])


MJCF = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <geom name="lamp" type="sphere" size="0.1" contype="0" conaffinity="0"/>
    <body name="trunk" pos="0 0 1">
      <freejoint/>
      <geom name="chest" type="box" size="0.1 0.2 0.3"/>
      <body name="arm">
        <joint axis="0 1 0"/><joint axis="1 0 0" pos="0 0 0"/>
        <geom name="upper" type="capsule" size="0.05 0.2" pos="0.5 0 0"/>
        <body name="hand" pos="1 0 0">
          <joint axis="0 1 0"/>
          <geom name="palm" type="ellipsoid" size="0.1 0.2 0.05"/>
          <geom name="finger" type="cylinder" size="0.02 0.1" contype="2" conaffinity="4" friction="0.3" priority="2"/>
        </body>
      </body>
    </body>
  </worldbody>
  <contact><exclude body1="trunk" body2="hand"/></contact>
</mujoco>
"""


def test_geoms_masks_and_exclusions_of_mjcf_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(MJCF)
    robot = torsor.load(path).to(device="casadi")
    kinds = {shape.name: shape.shape for link in (robot.base, *robot.links) for shape in link.shapes}
    assert kinds == {
        "floor": "plane",
        "chest": "box",
        "upper": "capsule",
        "palm": "ellipsoid",
        "finger": "cylinder",
    }
    finger = robot.links[-1].shapes[-1]
    assert (finger.friction, finger.priority, robot.base.shapes[0].friction) == (0.3, 2, 1.0)  # 1 is MuJoCo's default
    assert robot.allowed_collisions == (("hand", "trunk", "excluded"),)
    matrix = robot.shapes.allowed(samples=0)
    assert matrix.reason("arm", "trunk") == "adjacent"  # by two joints of one body
    pairs = {frozenset(pair) for pair in robot.shapes.distances(robot.neutral(), matrix).pairs}
    assert pairs == {frozenset(("floor", name)) for name in ("chest", "upper", "palm")}
    for suffix in (".toml", ".xml"):
        robot.save(tmp_path / f"again{suffix}")
        again = torsor.load(tmp_path / f"again{suffix}")
        assert again.allowed_collisions == robot.allowed_collisions
        for before, after in zip((robot.base, *robot.links), (again.base, *again.links), strict=True):
            assert [each.shape for each in before.shapes] == [each.shape for each in after.shapes]
            assert all(np.allclose(a.pose, b.pose) for a, b in zip(before.shapes, after.shapes, strict=True))
            assert [each.size for each in before.shapes] == [each.size for each in after.shapes]
            surfaces = (
                [(s.contype, s.conaffinity, s.friction, s.priority) for s in each.shapes] for each in (before, after)
            )
            assert next(surfaces) == next(surfaces)


URDF = """
<robot name="arm">
  <link name="base"><collision><geometry><box size="1 1 0.1"/></geometry></collision></link>
  <link name="flange"><collision name="ring"><origin xyz="0 0 0.2"/><geometry><cylinder radius="0.1" length="0.4"/>
    </geometry></collision></link>
  <link name="tool"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
    <collision><geometry><mesh filename="package://lost/tool.stl" scale="1 -1 1"/></geometry></collision>
    <collision><geometry><sphere radius="0"/></geometry></collision></link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="flange"/></joint>
  <joint name="weld" type="fixed"><origin xyz="0 0 0.5"/><parent link="flange"/><child link="tool"/></joint>
</robot>
"""


def test_collisions_of_urdf_keep_their_link_when_it_is_welded(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(URDF)
    with pytest.warns(torsor.ModelWarning) as caught:
        robot = torsor.load(path)
    assert any("line 8: link 'tool': shape: size of a sphere is (0.0,)" in str(each.message) for each in caught)
    ring, mesh = robot.links[0].shapes
    assert (ring.name, ring.link, ring.pose[2, 3]) == ("ring", "", 0.2)
    assert (mesh.shape, mesh.link, mesh.pose[2, 3], mesh.size) == ("mesh", "tool", 0.5, (1.0, -1.0, 1.0))
    robot.save(tmp_path / "arm.toml")
    assert torsor.load(tmp_path / "arm.toml") == robot
    with refused(where="shape 'tool/0'", what="the mesh 'package://lost/tool.stl' is not found"):
        robot.with_shapes("base", [BALL]).shapes.distances([0.0], [("base", "tool")])
    merged = robot.attach(torsor.build("cup", [torsor.Link("cup", 1.0, shapes=(BALL,))], []), "tool")
    assert [shape.link for shape in merged.links[0].shapes] == ["", "tool", "cup"]


def test_a_matrix_is_pickled_whole() -> None:
    import pickle

    matrix = AllowedCollisions("arm", ("a", "b"), {("b", "a"): "user"})
    assert pickle.loads(pickle.dumps(matrix)).reasons == {("a", "b"): "user"}


def test_a_collision_of_urdf_of_another_kind_is_named(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(URDF.replace('<sphere radius="0"/>', '<cone radius="1"/>'))
    with warned(what="a <collision> with <cone>; this collision shape is omitted", allowed="<box>,"):
        torsor.load(path)


def test_bad_files_and_shapes_raise(tmp_path: Path) -> None:
    robot = torsor.library.planar_chain(2)
    for wrong, words in (
        (tmp_path / "no.srdf", "no such file"),
        (3, "allowed collisions are 3"),
        (None, "allowed collisions are None"),
        (tmp_path, "the suffix is"),
    ):
        with refused(words):
            robot.with_allowed_collisions(wrong)
    with refused(what="its folder does not exist"):
        robot.shapes.allowed(0).save(tmp_path / "no" / "x.srdf")
    with refused(argument="shapes"):
        robot.with_shapes("link1", None)  # type: ignore[arg-type]
    with refused(argument="name"):
        torsor.Shape("sphere", (0.1,), name=3)  # type: ignore[arg-type]
    with refused(argument="gradient"):
        robot.with_shapes("base", [BALL]).shapes.distances([0.0, 0.0], gradient="yes")  # type: ignore[arg-type]
    for function in (enclosing_capsule, lambda shape: contact_points(shape, 0, BALL, 0)):
        with refused(argument="shape"):
            function(3)  # type: ignore[arg-type]
