"""MJCF meshes are read only if a number depends on them, and MuJoCo writes nothing into the user's folder."""

from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned

mujoco = pytest.importorskip("mujoco")

# A wedge: no symmetry, so that its principal axes are turned.
WEDGE = "v 0 0 0\nv 2 0 0\nv 0 1 0\nv 0 0 0.5\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
INERTIAL = '<inertial pos="0.1 0 0" mass="2" diaginertia="0.1 0.2 0.25"/>'
GEOM = '<geom type="mesh" mesh="{mesh}" pos="0.1 0.2 0.3" euler="10 20 30"{more}/>'


def write(folder: Path, first: str, second: str, more: str = "", assets: str = "", compiler: str = "") -> Path:
    """Write an arm of two bodies, with the mesh ``given`` on the first and the mesh ``inferred`` on the second."""
    path = folder / "arm.xml"
    path.write_text(f"""<mujoco><compiler meshdir="meshes"{compiler}/><asset>{assets}
      <mesh name="given" file="given.obj" scale="0.1 -0.2 0.3"/><mesh file="inferred.obj" scale="0.1 0.1 0.1"/></asset>
      <worldbody><body name="one"><joint name="j1" axis="0 0 1"/>{first}{GEOM.format(mesh="given", more=more)}
      <body name="two" pos="1 0 0"><joint name="j2" axis="0 1 0"/>{second}{GEOM.format(mesh="inferred", more="")}
      </body></body></worldbody></mujoco>""")
    (folder / "meshes").mkdir(exist_ok=True)
    return path


def add(folder: Path, *names: str, text: str = WEDGE) -> None:
    for name in names:
        (folder / "meshes" / f"{name}.obj").write_text(text)


def test_a_missing_mesh_does_not_matter_where_the_inertia_is_given(tmp_path: Path) -> None:
    path = write(tmp_path, INERTIAL, INERTIAL)
    robot = torsor.load(path)
    assert [(link.mass, *np.diag(link.inertia)) for link in robot.links] == [(2.0, 0.1, 0.2, 0.25)] * 2
    assert [visual.path for link in robot.links for visual in link.visuals] == [None, None]
    assert Path(robot.links[0].visuals[0].mesh).name == "given.obj"


def test_meshes_are_found_from_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, INERTIAL, INERTIAL)
    add(tmp_path, "given", "inferred")
    monkeypatch.chdir(tmp_path.parent)
    visual = torsor.load(path.relative_to(tmp_path.parent)).links[0].visuals[0]
    assert Path(visual.path).resolve() == (tmp_path / "meshes" / "given.obj").resolve()


def test_a_mesh_that_decides_nothing_is_not_read(tmp_path: Path) -> None:
    path = write(tmp_path, INERTIAL, INERTIAL)
    add(tmp_path, "given", "inferred", text="no mesh at all")
    first = torsor.load(path).links[0].visuals[0]
    assert Path(first.path) == tmp_path / "meshes" / "given.obj"
    assert first.size == (0.1, -0.2, 0.3)


@pytest.mark.parametrize(
    ("first", "more", "compiler"),
    [
        (INERTIAL, "", ""),
        (INERTIAL + '<geom size="0.1"/>', "", ' inertiafromgeom="true"'),
        ('<geom size="0.1"/>', ' mass="0"', ""),
        ('<geom size="0.1"/>', ' density="0"', ""),
        ('<geom size="0.1"/>', ' group="2"', ' inertiagrouprange="0 1"'),
        ("", "", ""),
    ],
)
def test_a_robot_is_that_of_mujoco_whether_meshes_are_read_or_not(
    tmp_path: Path, first: str, more: str, compiler: str
) -> None:
    path = write(tmp_path, first, "", more, compiler=compiler)
    add(tmp_path, "given", "inferred")
    model, robot = mujoco.MjModel.from_xml_path(str(path)), torsor.load(path)
    for k, link in enumerate(robot.links, start=1):
        moments = np.sort(np.linalg.eigvalsh(link.inertia))
        assert link.mass == model.body_mass[k]
        np.testing.assert_allclose(link.com, model.body_ipos[k], rtol=0, atol=1e-15)
        np.testing.assert_allclose(moments, np.sort(model.body_inertia[k]), rtol=1e-12)
        visual = link.visuals[-1]
        np.testing.assert_allclose(visual.pose[:3, 3], [0.1, 0.2, 0.3], rtol=0, atol=1e-6)


def test_a_missing_mesh_whose_inertia_is_needed_is_refused_with_the_fix(tmp_path: Path) -> None:
    with refused(fix="give the body an <inertial>"):
        torsor.load(write(tmp_path, INERTIAL, ""))


def test_a_missing_include_is_refused_with_the_fix(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text('<mujoco><include file="none.xml"/></mujoco>')
    with refused(fix="add the included file"):
        torsor.load(path)


def test_missing_textures_do_not_matter(tmp_path: Path) -> None:
    assets = '<texture type="skybox" builtin="gradient" rgb1="1 1 1" rgb2="0 0 0" width="8" height="8"/>'
    assets += '<texture type="2d" file="none.png"/><material name="red" texture="none" rgba="1 0 0 1"/>'
    path = write(tmp_path, INERTIAL, INERTIAL, ' material="red"', assets)
    assert torsor.load(path).links[0].visuals[0].color == (1, 0, 0, 1)


def test_mujoco_leaves_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    joints = '<joint axis="0 0 1"/><joint axis="0 0 1"/>'  # MuJoCo warns of its singular mass matrix
    path = tmp_path / "singular.xml"
    path.write_text(f'<mujoco><worldbody><body>{joints}<geom size="0.1"/></body></worldbody></mujoco>')
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    torsor.load(path)
    assert not list(folder.iterdir())
    assert mujoco.get_mju_user_warning() is None


def test_the_name_of_a_geom_that_is_not_utf8_is_refused_with_the_fix(tmp_path: Path) -> None:
    body = b'<body name="link"><joint/><geom name="b\xb9ll" size="0.1"/></body>'
    (tmp_path / "arm.xml").write_bytes(b"<mujoco><worldbody>%s</worldbody></mujoco>" % body)
    unread = refused(where="arm.xml", what="the name of a geom cannot be read", fix="save it as UTF-8")
    with warned(where="arm.xml", what="not well-formed XML"), unread:
        torsor.load(tmp_path / "arm.xml")
