"""The TOML format: saved files read back equal, and invalid files raise a helpful error."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.formats.dispatch import read
from torsor.formats.toml import reading as toml
from torsor.formats.toml import reading as toml_schema
from torsor.formats.toml.reading import read_toml
from torsor.formats.toml.writing import write_toml
from torsor.mechanism import KINDS, Coupling, Frame, Joint, Link, Mechanism, Motor, Spring, Visual, build
from torsor.mechanism.parts import VISUAL_SIZES
from torsor.spatial import from_quaternion, from_rpy, make_pose

DOCUMENT = Path(__file__).parents[2] / "docs" / "compute" / "toml.md"
STRANGE = [
    'say "hi"',
    "back\\slash",
    "two\nlines",
    "tab\there",
    "关节",
    "\x7f\x00\x1f",
    "é\u2028🤖",
    "#=[a.b]",
    " spaces ",
]
MOVING = [kind for kind in KINDS if kind != "fixed"]


def random_pose(rng: np.random.Generator) -> np.ndarray:
    choice = rng.integers(4)
    if choice == 0:
        return make_pose(p=rng.normal(size=3))
    if choice == 1:
        return make_pose(from_rpy(rng.uniform(-3, 3, 3).round(2)), rng.normal(size=3).round(3))
    if choice == 2:
        return make_pose(from_rpy(rng.integers(-2, 3, 3) * np.pi / 2))
    return make_pose(from_quaternion(rng.normal(size=4)), rng.normal(size=3))


def random_visual(rng: np.random.Generator, name: str) -> Visual:
    shape = str(rng.choice(list(VISUAL_SIZES)))
    mesh = {"mesh": f"package://{name}.stl", "path": f"folder/{name}.stl"} if shape == "mesh" else {}
    color = None if rng.integers(2) else tuple(rng.random(4).tolist())
    return Visual(shape, tuple(rng.random(VISUAL_SIZES[shape]).tolist()), random_pose(rng), color, name=name, **mesh)


def random_link(rng: np.random.Generator, name: str) -> Link:
    points = rng.normal(size=(5, 3))
    inertia = sum((p @ p) * np.eye(3) - np.outer(p, p) for p in points)
    visuals = tuple(random_visual(rng, name) for _ in range(rng.integers(3)))
    return Link(name, rng.uniform(0.1, 5), rng.normal(size=3), 0.5 * (inertia + inertia.T), visuals)


def random_joint(rng: np.random.Generator, name: str, kind: str, parent: str, child: str) -> Joint:
    nq, nv = KINDS[kind].nq, KINDS[kind].nv
    some = {
        "axis": rng.normal(size=3),
        "point": rng.normal(size=3),
        "pitch": float(rng.normal()),
        "ratio": float(rng.normal()),
        "offset": float(rng.normal()),
        "lower": -rng.uniform(0, 9, nq),
        "upper": rng.choice([np.inf, 1.0, 10.0, 90.0], nq),
        "velocity_limit": rng.uniform(0, 9, nv),
        "effort_limit": float(rng.uniform(0, 9)),
        "coulomb": rng.uniform(0, 1, nv),
        "viscous": float(rng.uniform(0, 1)),
        "smooth": 1e-5,
        "rotor_inertia": rng.uniform(0, 1, nv),
        "kp": rng.uniform(0, 1, nv),
        "kd": float(rng.uniform(0, 1)),
    }
    law = "fmax(3.5, 100 + 0.1 * exp(x))" if rng.integers(2) else float(rng.uniform(1, 9))
    some["spring"] = Spring(law, float(rng.uniform(0, 1)), float(rng.normal()))
    drive = {"stiffness": law, "damping": 0.1} if rng.integers(2) else {"viscous": 0.2, "coulomb": 0.3, "smooth": 0.01}
    some["motor"] = Motor(parent, float(rng.uniform(1e-3, 1)), float(rng.normal()), rng.normal(size=3), **drive)
    single = ("ratio", "offset", "spring", "motor")  # only for joints with one position
    chosen = {key: value for key, value in some.items() if rng.integers(2) and (nq == nv == 1 or key not in single)}
    return Joint(name, kind, parent, child, random_pose(rng), **chosen)


def random_mechanism(seed: int) -> Mechanism:
    rng = np.random.default_rng(seed)
    names = ["base"] + [f"link {i} {STRANGE[i % len(STRANGE)]}" for i in range(len(MOVING) + 2)]
    joints = []
    for i, kind in enumerate([*rng.permutation(MOVING), "revolute", "prismatic"]):
        joints.append(random_joint(rng, f"joint {names[i + 1]}", str(kind), names[rng.integers(i + 1)], names[i + 1]))
    leader = next(joint for joint in joints if joint.type == "revolute")
    follower = random_link(rng, "follower")
    follows = Joint(
        "follows", "helical", names[1], "follower", pitch=0.1, coordinate=leader.name, ratio=-2.5, offset=0.1
    )
    links = [*(random_link(rng, name) for name in names), follower]
    frames = [Frame(f"frame {text}", names[rng.integers(len(names))], random_pose(rng)) for text in STRANGE]
    return build("strange " + STRANGE[0], links, [*joints, follows], frames, gravity=rng.normal(size=3))


@pytest.mark.parametrize("seed", range(25))
def test_round_trip(tmp_path: Path, seed: int) -> None:
    robot = random_mechanism(seed)
    write_toml(robot, tmp_path / "robot.toml")
    again = read_toml(tmp_path / "robot.toml")
    assert again == robot
    with np.printoptions(floatmode="unique", threshold=10**6):
        assert repr(again.links) == repr(robot.links)
        assert repr(again.joints) == repr(robot.joints)
        assert repr(again.frames) == repr(robot.frames)
    write_toml(again, tmp_path / "again.toml")
    assert (tmp_path / "again.toml").read_bytes() == (tmp_path / "robot.toml").read_bytes()


def test_every_joint_type_is_tried() -> None:
    assert {joint.type for joint in random_mechanism(0).joints} == set(KINDS) - {"fixed"}


def test_subclass_and_text_path(tmp_path: Path) -> None:
    class Special(Mechanism):
        pass

    robot = random_mechanism(0)
    write_toml(
        Special(robot.name, robot.base, robot.links, robot.joints, robot.frames, robot.gravity), f"{tmp_path}/a.toml"
    )
    assert read_toml(tmp_path / "a.toml") == robot


def test_written_file_is_short_and_readable(tmp_path: Path) -> None:
    arm = Link("arm", 1.0, (0, 0, 0.5), np.diag([0.1, 0.1, 0.02]))
    hinge = Joint(
        "hinge", "revolute", "ground", "arm", make_pose(from_rpy([0.3, 0, np.pi / 2])), axis=(0, 1, 0), upper=2
    )
    write_toml(build("pendulum", [Link("ground"), arm], [hinge]), tmp_path / "a.toml")
    assert (tmp_path / "a.toml").read_text() == (
        'torsor = 1\nname = "pendulum"\ngravity = [0, 0, -9.81]\n\n[units]\nangle = "rad"\nlength = "m"\n'
        'mass = "kg"\n\n'
        '[[links]]\nname = "ground"\n\n'
        '[[links]]\nname = "arm"\nmass = 1\ncom = [0, 0, 0.5]\ninertia = [0.1, 0.1, 0.02, 0, 0, 0]\n\n'
        '[[joints]]\nname = "hinge"\ntype = "revolute"\nparent = "ground"\nchild = "arm"\n'
        "rpy = [0.3, 0, 1.5707963268]\naxis = [0, 1, 0]\nupper = 2\n"
    )


def test_rotation_is_written_where_angles_lose_bits(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rotations = [from_quaternion(rng.normal(size=4)) for _ in range(50)]
    rotations += [from_rpy(rng.uniform(-1.5, 1.5, 3).round(3)) for _ in range(50)]
    frames = [Frame(f"f{i}", "base", make_pose(R)) for i, R in enumerate(rotations)]
    write_toml(build("r", [Link("base")], [], frames), tmp_path / "a.toml")
    tables = tomllib.loads((tmp_path / "a.toml").read_text())["frames"]
    assert any("rotation" in table for table in tables[:50])
    assert all("rpy" in table for table in tables[50:])
    for table, frame, R in zip(tables, read_toml(tmp_path / "a.toml").frames, rotations, strict=True):
        assert ("rpy" in table) != ("rotation" in table)
        assert np.array_equal(frame.pose[:3, :3], R)


def test_asymmetric_rounding_of_inertia_is_kept(tmp_path: Path) -> None:
    inertia = np.diag([1.0, 1.0, 1.0]) + 0.1
    inertia[0, 1] = np.nextafter(0.1, 1)
    robot = build("r", [Link("base", 1.0, inertia=inertia)], [])
    write_toml(robot, tmp_path / "a.toml")
    assert np.array_equal(read_toml(tmp_path / "a.toml").base.inertia, inertia)


# Files written by hand

HEAD = 'torsor = 1\n[units]\nangle = "rad"\n'
LINKS = '[[links]]\nname = "ground"\n[[links]]\nname = "arm"\nmass = 1\n'
JOINT = '[[joints]]\nname = "hinge"\ntype = "revolute"\nparent = "ground"\nchild = "arm"\n'


def read_text(folder: Path, text: str | bytes, **options: object) -> Mechanism:
    path = folder / "arm.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_toml(path, **options)  # type: ignore[arg-type]


def test_defaults(tmp_path: Path) -> None:
    robot = read_text(tmp_path, HEAD + LINKS + JOINT)
    expected = build("arm", [Link("ground"), Link("arm", mass=1.0)], [Joint("hinge", "revolute", "ground", "arm")])
    assert robot == expected
    assert read_text(tmp_path, b"\xef\xbb\xbf" + (HEAD + LINKS + JOINT).encode()) == expected  # as some editors save it


def test_floating_base(tmp_path: Path) -> None:
    robot = read_text(tmp_path, HEAD + LINKS + JOINT, base="floating")
    assert [joint.type for joint in robot.joints] == ["free", "revolute"]


def test_fixed_joints_are_merged(tmp_path: Path) -> None:
    robot = read_text(tmp_path, HEAD + LINKS + JOINT.replace("revolute", "fixed"))
    assert robot.nv == 0
    assert robot.base.mass == 1.0
    assert [frame.name for frame in robot.frames] == ["arm"]


def test_degrees_equal_radians(tmp_path: Path) -> None:
    def text(unit: str, angle: float) -> str:
        turn = 90 * angle
        more = "".join(f'[[links]]\nname = "{name}"\nmass = 1\n' for name in "abcde")
        joints = "".join(
            f'[[joints]]\nname = "{name}"\ntype = "{kind}"\nparent = "arm"\nchild = "{name}"\n{keys}\n'
            for name, kind, keys in (
                ("a", "prismatic", "lower = -90\nupper = 90\nvelocity_limit = 90\noffset = 3"),
                ("b", "planar", f"lower = [-9, -9, {-turn!r}]\nupper = inf\nvelocity_limit = [1, 1, {turn!r}]"),
                ("c", "spherical", f"lower = -1\nupper = [1, 1, 1, 1]\nvelocity_limit = {turn!r}"),
                ("d", "free", f"upper = 90\nvelocity_limit = [{turn!r}, {turn!r}, {turn!r}, 90, 90, 90]"),
                ("e", "helical", f"pitch = 0.5\nfollows = 'hinge'\noffset = {turn!r}\nlower = {-turn!r}"),
            )
        )
        hinge = JOINT + (
            f"rpy = [0, {turn!r}, {20 * angle!r}]\nlower = {-170 * angle!r}\nupper = {400 * angle!r}\n"
            f"velocity_limit = {turn!r}\nviscous = 90\ncoulomb = 90\neffort_limit = 90\nsmooth = 0.5\n"
        )
        frame = f'[[frames]]\nname = "f"\nlink = "a"\nrpy = [{turn!r}, 0, 0]\n'
        return HEAD.replace("rad", unit) + LINKS + more + hinge + joints + frame

    degrees, radians = (read_text(tmp_path, text(*unit)) for unit in (("deg", 1.0), ("rad", np.pi / 180)))
    assert degrees.joint("a") == radians.joint("a")
    for name in ("lower", "upper", "velocity_limit", "effort_limit"):
        np.testing.assert_allclose(getattr(degrees, name), getattr(radians, name), rtol=1e-15)
    for one, other in zip(degrees.joints, radians.joints, strict=True):
        np.testing.assert_allclose(one.placement, other.placement, rtol=1e-15, atol=1e-15)
        assert (one.pitch, one.viscous.tolist(), one.smooth) == (other.pitch, other.viscous.tolist(), other.smooth)
    assert degrees.joint("hinge").upper.tolist() == [np.radians(400)]
    assert degrees.joint("e").offset == np.pi / 2
    assert degrees.joint("b").lower.tolist() == [-9, -9, -np.pi / 2]
    assert np.array_equal(degrees.frames[0].pose, radians.frames[0].pose)


def test_multi_turn_limits(tmp_path: Path) -> None:
    assert read_text(tmp_path, HEAD + LINKS + JOINT + "lower = -12.56\nupper = 7.3\n").upper.tolist() == [7.3]
    text = HEAD + LINKS + JOINT + "lower = -10\nupper = 100\nmulti_turn = true\n"
    assert read_text(tmp_path, text).upper.tolist() == [100.0]


def test_couplings_are_written_and_read_with_coefficients(tmp_path: Path) -> None:
    coupling = '[[couplings]]\nname = "lock"\ncoefficients = { hinge = 2.0 }\noffset = 0.5\n'
    robot = read_text(tmp_path, HEAD + LINKS + JOINT + coupling)
    assert robot.loops == (Coupling("lock", {"hinge": 2.0}, 0.5),)
    write_toml(robot, tmp_path / "again.toml")
    assert tomllib.loads((tmp_path / "again.toml").read_text())["couplings"][0]["coefficients"] == {"hinge": 2.0}
    assert read_toml(tmp_path / "again.toml") == robot


def test_unphysical_inertia(tmp_path: Path) -> None:
    text = HEAD + LINKS + "inertia = [1, 1, 3, 0, 0, 0]\n" + JOINT
    with refused(where="arm.toml: link 'arm'", what="no body has the principal moments"):
        read_text(tmp_path, text)
    with warned(where="arm.toml: link 'arm'", what="no body has"):
        robot = read_text(tmp_path, text, strict=False)
    write_toml(robot, tmp_path / "again.toml")
    assert read_toml(tmp_path / "again.toml") == robot  # written, it is known


def test_example_of_the_documentation(tmp_path: Path) -> None:
    block = re.search(r"```toml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    robot = read_text(tmp_path, block[1])
    assert robot.name == "rail arm"
    assert robot.coordinate_names == ("rail", "shoulder")
    assert robot.mass == pytest.approx(11.0)
    assert [frame.name for frame in robot.frames] == ["grip"]
    np.testing.assert_allclose(robot.places["grip"].pose[:3, 3], [0, 0, 0.62])
    np.testing.assert_allclose(robot.upper, [2, np.radians(110)])
    write_toml(robot, tmp_path / "again.toml")
    assert read_toml(tmp_path / "again.toml") == robot


def test_documentation_names_every_key() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    keys = {key.strip("*") for keys in toml_schema.KEYS.values() for key in keys.split()}
    assert [key for key in sorted(keys) if not re.search(rf"`\[*((links|joints)\.)?{key}\W", document)] == []
    assert [kind for kind in KINDS if f"`{kind}`" not in document] == []


# Invalid input

WRONG = {
    "not TOML": ("torsor = 1\nname = \n", "not valid TOML:"),
    "key twice": ("torsor = 1\ntorsor = 1\n", "not valid TOML:"),
    "too deep": ("torsor = " + "[" * 100_000, "not valid TOML"),
    "not UTF-8": (b'torsor = 1\nname = "caf\xe9"\n', "save it as UTF-8"),
    "no version": (HEAD.replace("torsor = 1", ""), "no format version"),
    "empty": ("", "no format version"),
    "other version": (HEAD.replace("= 1", "= 2"), "format version 2"),
    "version true": (HEAD.replace("= 1", "= true"), "format version True"),
    "version 1.0": (HEAD.replace("= 1", "= 1.0"), "format version 1.0"),
    "no units": ("torsor = 1\n" + LINKS, 'add units, a table with angle = "rad"'),
    "units no table": ('torsor = 1\nunits = "rad"\n', "a table with angle"),
    "no angle": ('torsor = 1\n[units]\nlength = "m"\n', "add angle"),
    "unit of angle": (
        HEAD.replace("rad", "grad"),
        "unknown unit of angle 'grad'",
    ),
    "unit of length": (HEAD + 'length = "mm"\n', "unknown unit of length 'mm'"),
    "unit of mass": (HEAD + "mass = 3\n", "unknown unit of mass 3"),
    "other unit": (HEAD + 'time = "s"\n', "angle, length, mass"),
    "unknown key": (
        HEAD + LINKS + JOINT + "velocty_limit = 1\n",
        "did you mean 'velocity_limit'",
    ),
    "unknown key on top": (
        "torsor = 1\ngravty = [0, 0, 1]\n",
        "did you mean 'gravity'",
    ),
    "unknown key of link": (HEAD + LINKS + "zzz = 1\n", "unknown key 'zzz'"),
    "bool for number": (HEAD + LINKS.replace("= 1", "= true"), "a finite number"),
    "string for number": (
        HEAD + LINKS.replace("= 1", '= "1"'),
        "remove the quotes",
    ),
    "row for number": (HEAD + LINKS.replace("= 1", "= [1]"), "a finite number"),
    "date for number": (HEAD + LINKS.replace("= 1", "= 2020-01-01"), "mass is datetime.date"),
    "table for number": (HEAD + LINKS.replace("= 1", "= {}"), "a finite number"),
    "huge number": (HEAD + LINKS.replace("= 1", "= 1" + "0" * 400), "a finite number"),
    "huge limit": (HEAD + LINKS + JOINT + "upper = 1" + "0" * 400, "a number or a row"),
    "endless number": (HEAD + LINKS.replace("= 1", "= 0x" + "f" * 5000), "not valid TOML:"),
    "endless key": ("torsor = 1\n" + "a." * 2_000 + "a = 1\n", "a key has too many dots"),
    "NaN": (HEAD + LINKS.replace("= 1", "= nan"), "a finite number"),
    "NaN in a row": (HEAD + LINKS + "com = [0, nan, 0]", "com is [0, nan, 0]"),
    "NaN limit": (HEAD + LINKS + JOINT + "upper = nan", "upper is nan"),
    "infinite mass": (HEAD + LINKS.replace("= 1", "= inf"), "a finite number"),
    "infinite friction": (
        HEAD + LINKS + JOINT + "coulomb = inf",
        "infinite only in limits",
    ),
    "no coefficients": (
        HEAD + LINKS + JOINT + '[[couplings]]\nname = "c"',
        "no coefficients",
    ),
    "coefficient true": (
        HEAD + LINKS + JOINT + '[[couplings]]\nname = "c"\ncoefficients = { hinge = true }',
        "coefficient of 'hinge'",
    ),
    "negative mass": (
        HEAD + LINKS.replace("= 1", "= -1"),
        "mass",
    ),
    "bool in a row": (HEAD + LINKS + "com = [0, true, 0]", "com is [0, True, 0]"),
    "string in a row": (HEAD + LINKS + 'com = [0, "0", 0]', "com is [0, '0', 0]"),
    "short row": (HEAD + LINKS + "com = [0, 0]", "3 finite numbers"),
    "empty row": (HEAD + LINKS + "com = []", "3 finite numbers"),
    "ragged rows": (
        HEAD + LINKS + "inertia = [[1, 0, 0], [0, 1], [0, 0, 1]]",
        "3 rows of 3",
    ),
    "five of six": (HEAD + LINKS + "inertia = [1, 1, 1, 0, 0]", "inertia is [1, 1, 1, 0, 0]"),
    "gravity": ("gravity = 9.81\n" + HEAD, "3 finite numbers"),
    "number for string": (HEAD + "[[links]]\nname = 5\n", "a string in quotes"),
    "number for bool": (HEAD + LINKS + JOINT + "multi_turn = 1", "multi_turn is 1"),
    "links no tables": ("links = [1, 2]\n" + HEAD, "links is [1, 2]"),
    "links one table": (HEAD + '[links]\nname = "a"\n', "links is {'name': 'a'}"),
    "no links": (HEAD, "there is no link"),
    "no name": (HEAD + LINKS + "[[links]]\nmass = 1\n", "add name"),
    "empty name": (HEAD + '[[links]]\nname = ""\n', "the name of a link is ''"),
    "no parent": (HEAD + LINKS + JOINT.replace('parent = "ground"', ""), "add parent"),
    "no child": (HEAD + LINKS + JOINT.replace('child = "arm"', ""), "add child"),
    "no type": (HEAD + LINKS + JOINT.replace('type = "revolute"', ""), "type is missing"),
    "no joint name": (HEAD + LINKS + JOINT.replace('name = "hinge"', ""), "name is missing"),
    "no frame link": (HEAD + LINKS + '[[frames]]\nname = "f"\n', "link is missing"),
    "type": (HEAD + LINKS + JOINT.replace("revolute", "Revolut"), "did you mean 'revolute'"),
    "missing link": (
        HEAD + LINKS + JOINT.replace('"ground"', '"floor"'),
        "joint 'hinge' has the parent 'floor'",
    ),
    "two links": (HEAD + LINKS + LINKS, "ground"),
    "two joints": (HEAD + LINKS + JOINT + JOINT, "hinge"),
    "two frames": (
        HEAD + LINKS + JOINT + '[[frames]]\nname = "arm"\nlink = "arm"\n',
        "arm",
    ),
    "both": (
        HEAD + LINKS + JOINT + "rpy = [0, 0, 0]\nrotation = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]\n",
        "both rpy and rotation",
    ),
    "rotation": (
        HEAD + LINKS + '[[frames]]\nname = "f"\nlink = "arm"\nrotation = [[0.7, -0.7, 0], [0.7, 0.7, 0], [0, 0, 1]]\n',
        "right-handed rotation matrix",
    ),
    "mirror": (HEAD + LINKS + JOINT + "rotation = [[1, 0, 0], [0, 1, 0], [0, 0, -1]]\n", "right-handed"),
    "axis": (HEAD + LINKS + JOINT + "axis = [0, 0, 0]", "axis"),
    "count": (
        HEAD + LINKS + JOINT + "upper = [1, 2]",
        "a number, or a row of 1",
    ),
    "nested limits": (HEAD + LINKS + JOINT + "upper = [[1]]", "a number or a row"),
    "limits": (HEAD + LINKS + JOINT + "lower = 1\nupper = 0", "lower"),
    "rpy in degrees": (
        HEAD + LINKS + JOINT + "rpy = [0, 0, 90]",
        "rad, more than one turn",
    ),
    "upper in degrees": (
        HEAD + LINKS + JOINT + "upper = 170",
        "upper is [170.0] rad, which looks like degrees",
    ),
    "lower in degrees": (
        HEAD + LINKS + JOINT + "lower = -90.0",
        "lower is [-90.0] rad, which looks like degrees",
    ),
    "follows": (HEAD + LINKS + JOINT + 'follows = "nobody"', "joint 'hinge' follows 'nobody'"),
    "shape": (
        HEAD + LINKS + '[[links.visuals]]\nshape = "cube"\n',
        "unknown shape 'cube'",
    ),
    "size": (
        HEAD + LINKS + '[[links.visuals]]\nshape = "box"\nsize = [1]\n',
        "size has 1 numbers",
    ),
    "spring is a number": (HEAD + LINKS + JOINT + "spring = 5", "spring is 5"),
    "no stiffness": (
        HEAD + LINKS + JOINT + "spring = {}",
        "add stiffness, a finite",
    ),
    "law": (
        HEAD + LINKS + JOINT + 'spring.stiffness = "open(1)"',
        "stiffness",
    ),
    "law with an import": (
        HEAD + LINKS + JOINT + "spring.stiffness = \"__import__('os').x\"",
        "stiffness",
    ),
    "law without end": (HEAD + LINKS + JOINT + f'spring.stiffness = "{"(" * 5000}"', "stiffness has 5000"),
    "deep law": (HEAD + LINKS + JOINT + f'spring.stiffness = "{"-" * 1900}x"', "stiffness"),
    "negative stiffness": (
        HEAD + LINKS + JOINT + "spring.stiffness = -1",
        "stiffness",
    ),
    "infinite law": (HEAD + LINKS + JOINT + 'spring.stiffness = "1/x"', "stiffness '1/x' is inf"),
    "carrier": (
        HEAD + LINKS + JOINT + 'motor = { carrier = "foot", inertia = 1 }',
        "the motor of joint 'hinge' is on 'foot', which does not exist",
    ),
    "motor without inertia": (
        HEAD + LINKS + JOINT + 'motor = { carrier = "ground" }',
        "add inertia, a finite number",
    ),
    "inertia of a motor": (
        HEAD + LINKS + JOINT + 'motor = { carrier = "ground", inertia = [1, 2] }',
        "inertia is [1, 2]",
    ),
    "elastic without inertia": (
        HEAD + LINKS + JOINT + 'motor = { carrier = "ground", inertia = 0, stiffness = 3 }',
        "an elastic joint has stiffness 3.0 and inertia 0.0",
    ),
    "color": (HEAD + LINKS + '[[links.visuals]]\nshape = "mesh"\ncolor = [1]\n', "color is [1]"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors(tmp_path: Path, case: str) -> None:
    text, message = WRONG[case]
    with refused(message) as caught:
        read_text(tmp_path, text)
    assert str(caught.value).startswith("arm.toml: ")
    assert len(str(caught.value)) < 500


def test_planar_angle_in_degrees(tmp_path: Path) -> None:
    text = HEAD + LINKS + JOINT.replace("revolute", "planar")
    assert read_text(tmp_path, text + "upper = [90, 90, 1]").upper.tolist() == [90, 90, 1]
    with refused(what="looks like degrees"):
        read_text(tmp_path, text + "upper = [1, 1, 90]")


def test_huge_file_is_refused(tmp_path: Path) -> None:
    assert toml.LARGEST_FILE == 64_000_000
    with (tmp_path / "arm.toml").open("wb") as file:
        file.truncate(toml.LARGEST_FILE + 1)
    with refused(where="arm.toml", allowed="64 MB"):
        read_toml(tmp_path / "arm.toml")


# Writing


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "robot.toml"
    write_toml(random_mechanism(0), path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    for method in ("replace", "write_bytes"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, method, fail)
            with pytest.raises(OSError, match="disk full"):
                write_toml(random_mechanism(1), path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]
    write_toml(random_mechanism(1), path)
    assert read_toml(path) == random_mechanism(1)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("robot", "message"),
    [
        (Mechanism("two\nlines", Link("base"), (), ()), "would not read back as equal"),
        (Mechanism("half", Link("\ud800"), (), ()), "would not read back as equal"),
    ],
)
def test_a_mechanism_that_would_not_read_back_is_not_written(tmp_path: Path, robot: Mechanism, message: str) -> None:
    with refused(message):
        write_toml(robot, tmp_path / "robot.toml")
    assert list(tmp_path.iterdir()) == []


def test_missing_folder(tmp_path: Path) -> None:
    with refused(what="its folder does not exist"):
        write_toml(random_mechanism(0), tmp_path / "nowhere" / "robot.toml")


def test_an_inertia_marked_as_unphysical_reads_back(tmp_path: Path) -> None:
    links = [Link("base"), Link("arm", 1.0, inertia=np.diag([1.0, 1.0, 3.0]), strict=False)]
    robot = build("odd", links, [Joint("hinge", "revolute", "base", "arm")])
    write_toml(robot, tmp_path / "odd.toml")
    assert "unphysical = true" in (tmp_path / "odd.toml").read_text()
    assert read_toml(tmp_path / "odd.toml") == robot
    declared = (tmp_path / "odd.toml").read_text().replace("unphysical = true\n", "")
    (tmp_path / "odd.toml").write_text(declared)
    with refused(what="no body has the principal moments"):
        read_toml(tmp_path / "odd.toml")


def test_all_inertias_that_no_body_has_are_named(tmp_path: Path) -> None:
    body = '[[links]]\nname = "{0}"\nmass = 1.0\ninertia = [-{1}, 1, 1, 0, 0, 0]\n'
    joint = '[[joints]]\nname = "{0}"\ntype = "revolute"\nparent = "o"\nchild = "{0}"\n'
    parts = ['[[links]]\nname = "o"\n', body.format("a", 2), body.format("b", 3), joint.format("a"), joint.format("b")]
    path = tmp_path / "arm.toml"
    path.write_text('torsor = 1\nunits.angle = "rad"\n' + "".join(parts))
    with refused(what="arm.toml: link 'a': no body"):
        read(path)


MODEL = "0.4 * sign(v) * exp(-(v / 0.1)**2)"


def rubbing() -> Mechanism:
    links = [Link("ground"), Link("arm", 1.0, (0.1, 0.2, 0.3), np.eye(3))]
    return build("arm", links, [Joint("hinge", "revolute", "ground", "arm", coulomb=0.2, friction_model=MODEL)])


def test_friction_models_are_kept(tmp_path: Path) -> None:
    write_toml(rubbing(), tmp_path / "arm.toml")
    assert read_toml(tmp_path / "arm.toml") == rubbing()
    assert f'friction_model = "{MODEL}"' in (tmp_path / "arm.toml").read_text()


@pytest.mark.parametrize("suffix", ["urdf", "sdf", "xml", "usda"])
def test_other_formats_warn_of_friction_models_that_they_cannot_have(tmp_path: Path, suffix: str) -> None:
    with warned(what="friction beyond Coulomb and viscous friction, which only TOML supports (hinge)"):
        torsor.Robot.of(rubbing()).save(tmp_path / f"arm.{suffix}")
