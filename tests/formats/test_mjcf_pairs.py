"""Explicit contact pairs of MJCF: the shapes that touch, and their friction, are those of MuJoCo."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import warned
from torsor.simulation import Contact
from torsor.simulation.contact import friction_of

mujoco = pytest.importorskip("mujoco")

TEXT = """<mujoco><option cone="elliptic"/><worldbody><geom name="floor" type="plane" size="9 9 1" {floor}/>
  <body name="body"><freejoint name="root"/><geom name="trunk" size="0.1" {none}/>
    <body name="right" pos="0 0.05 0"><joint axis="0 1 0"/>
      <geom name="right_foot" size="0.1" pos="0 0 -0.3" {none}/></body>
    <body name="left" pos="0 -0.05 0"><joint axis="0 1 0"/>
      <geom name="left_foot" size="0.1" pos="0 0 -0.3" {left}/></body>
  </body></worldbody><contact>{pairs}</contact></mujoco>"""
NONE = 'contype="0" conaffinity="0"'
PAIRS = """<pair geom1="floor" geom2="right_foot" friction="0.4 0.4 0 0 0"/>
  <pair geom1="left_foot" geom2="floor"/><pair geom1="left_foot" geom2="right_foot" friction="0.4 0.4 0 0 0"/>"""


def written(folder: Path, pairs: str = PAIRS, floor: str = 'friction="0.7"', left: str = "") -> Path:
    path = folder / "robot.xml"
    path.write_text(TEXT.format(floor=floor, pairs=pairs, left=left, none=NONE))
    return path


def test_shapes_of_pairs_touch_with_the_friction_of_the_pair(tmp_path: Path) -> None:
    path = written(tmp_path)
    robot, model = torsor.load(path), mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)  # all spheres are in the floor
    expected = {}
    for a, b, friction in zip(model.pair_geom1, model.pair_geom2, model.pair_friction[:, 0], strict=True):
        expected[frozenset(model.geom(k).name for k in (a, b))] = friction
    assert {frozenset(model.geom(k).name for k in each.geom) for each in data.contact} <= expected.keys()
    contact = Contact(pairs="all")
    found = {frozenset(side.name for side in each): friction_of(each, contact) for each in contact.touches(robot)}
    assert found == expected
    feet = [{side.name for side in each} - {"floor"} for each in Contact().touches(robot)]
    assert sorted(map(sorted, feet)) == [["left_foot"], ["right_foot"]]


def test_masks_of_other_shapes_keep_their_meaning(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        masks = rng.integers(0, 4, size=(8, 2))
        chosen = [pair for pair in combinations(range(8), 2) if rng.random() < 0.3]
        bodies = "".join(
            f'<body><freejoint/><geom name="g{k}" size="0.1" contype="{a}" conaffinity="{b}"/></body>'
            for k, (a, b) in enumerate(masks)
        )
        pairs = "".join(f'<pair geom1="g{a}" geom2="g{b}"/>' for a, b in chosen)
        path = tmp_path / "swarm.xml"
        path.write_text(f"<mujoco><worldbody>{bodies}</worldbody><contact>{pairs}</contact></mujoco>")
        shapes = {shape.name: shape for link in torsor.load(path).links for shape in link.shapes}
        for a, b in combinations(range(8), 2):
            by_masks = bool(masks[a, 0] & masks[b, 1] or masks[b, 0] & masks[a, 1])
            if f"g{a}" in shapes and f"g{b}" in shapes:
                assert shapes[f"g{a}"].may_touch(shapes[f"g{b}"]) == (by_masks or (a, b) in chosen)
            else:
                assert not by_masks and (a, b) not in chosen


def test_a_file_with_pairs_is_written_and_read_with_the_same_contacts(tmp_path: Path) -> None:
    robot = torsor.load(written(tmp_path))
    robot.save(tmp_path / "again.xml")
    both = [Contact(pairs="all").touches(each) for each in (robot, torsor.load(tmp_path / "again.xml"))]
    names = [{frozenset(side.name for side in each) for each in touches} for touches in both]
    assert names[0] == names[1]


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"pairs": '<pair name="p" geom1="trunk" geom2="left_foot"/>'}, "neighbouring or excluded bodies (p)"),
        (
            {"pairs": '<pair name="p" geom1="right_foot" geom2="left_foot"/><exclude body1="left" body2="right"/>'},
            "neighbouring or excluded bodies (p)",
        ),
        (
            {"pairs": '<pair name="p" geom1="floor" geom2="left_foot" friction="0.1 0.1 0 0 0"/>'},
            "friction of contact pairs (p)",
        ),
        (
            {"pairs": '<pair name="p" geom1="floor" geom2="right_foot" friction="1 0.1 0 0 0"/>'},
            "friction of contact pairs (p)",
        ),
        (
            {"pairs": PAIRS, "floor": f'contype="{2**31 - 1}"', "left": NONE},
            "contact pairs without an unused bit in the masks",
        ),
    ],
)
def test_what_is_lost_of_a_pair_is_named(tmp_path: Path, settings: dict[str, str], what: str) -> None:
    with warned(what=what):
        torsor.load(written(tmp_path, **settings))
