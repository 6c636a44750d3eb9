"""Files made to take long, to fill the memory, to command the terminal or to cause an error of another kind."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
import torsor.base.checks
from refusals import refused, warned
from torsor import ModelError
from torsor.base.errors import printable, shortened
from torsor.cli.main import main
from torsor.formats import xml
from torsor.motion import load_problem

from .urdf_text import SOUND, arm, link, load, robot

POSE, SCREW, INERTIA = np.eye(4), [0, 0, 1, 0, 0, 0], np.eye(6)
BODY = '<body name="b"><joint name="j" type="hinge"/><geom size="1" mass="2"/></body>'
HINGE = f'<mujoco model="m"><worldbody>{BODY}</worldbody>'


@pytest.mark.parametrize("key", ["a." * 20_000 + "a", "[" + "a . " * 20_000 + "a]", '"a".' * 20_000 + "a"])
def test_a_key_with_thousands_of_dots_is_refused_before_it_is_parsed(tmp_path: Path, key: str) -> None:
    (tmp_path / "arm.toml").write_text(f"torsor = 1\n{key} = 1" if key[0] != "[" else f"torsor = 1\n{key}")
    for read in (torsor.load, load_problem):
        with refused(where="arm.toml: line 2", allowed="up to 100 parts"):
            read(tmp_path / "arm.toml")


def test_rows_of_many_numbers_and_words_with_dots_are_no_keys(tmp_path: Path) -> None:
    words = ", ".join(["1.5"] * 500)
    content = f"x = [{words}]\ny = '{'. ' * 500}'\nz = '{'www.example. org ' * 200}'".encode()
    assert len(torsor.formats.toml.reading.toml_data(content, "x.toml")["x"]) == 500


def test_reading_a_long_word_grows_linearly() -> None:
    """A search that began anew at each letter would take minutes for this one."""
    assert torsor.formats.toml.reading.toml_data(b"x = '" + b"a" * 4_000_000 + b"'", "x.toml")["x"] == "a" * 4_000_000


@pytest.mark.parametrize(("name", "text"), [("arm.urdf", arm()), ("arm.xml", HINGE + "</mujoco>")])
def test_a_file_that_is_too_large_is_refused_and_the_limit_can_be_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"<!--" + b" " * 16_000_000 + b"-->" + text.encode())
    with refused(where=name, allowed="16 MB", fix="TORSOR_LARGEST_FILE"):
        torsor.load(path)
    path.write_text(text)
    monkeypatch.setenv("TORSOR_LARGEST_FILE", "50")
    with refused(allowed="5e-05 MB"):
        torsor.load(path)
    monkeypatch.setenv("TORSOR_LARGEST_FILE", str(len(text)))
    assert torsor.load(path).nv == 1
    monkeypatch.setenv("TORSOR_LARGEST_FILE", "much")
    with refused(where="TORSOR_LARGEST_FILE", allowed="a number of bytes"):
        torsor.load(path)


@pytest.mark.parametrize(
    "text",
    ["<!--" * 300_000, "<!---->" * 200_000 + "<", "<mujoco>" + "<?" * 300_000, "<!-- -- -->" * 100_000 + "<robot"],
)
def test_comments_that_do_not_end_take_time_in_proportion_to_the_file(tmp_path: Path, text: str) -> None:
    """A search that went back at each of them would take hours."""
    for name in ("arm.urdf", "arm.xml"):
        with refused(what="not well-formed XML"):
            load(tmp_path, text, name)


def test_a_file_of_too_many_elements_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_ELEMENTS", 20)
    with refused(where="arm.urdf", allowed="20 or fewer"):
        load(tmp_path, arm(extra="<gazebo/>" * 30))


@pytest.mark.parametrize(
    "given",
    [
        {"home": 5},
        {"screws": 5},
        {"inertias": None},
        {"home": "a", "screws": "b", "inertias": "c"},
        {"home": [[1, [2]]]},
        {"screws": [[1, [2, 3]]]},
        {"parents": 5},
        {"parents": "a"},
    ],
)
def test_screws_that_are_no_lists_are_an_error_in_words(given: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"robot: .*allowed: "):
        torsor.from_screws(**({"home": [POSE], "screws": [SCREW], "inertias": [INERTIA]} | given))


@pytest.mark.parametrize("rows", [5, None, "ab", {}])
def test_tables_that_are_no_lists_are_an_error_in_words(rows: Any) -> None:
    for read in (torsor.from_dh, torsor.from_mdh):
        with refused(argument="links", where="robot"):
            read(rows)


@pytest.mark.parametrize("name", [5, np.eye(3), np.zeros(0), [], b"x"])
def test_a_row_with_a_name_that_is_no_text_is_an_error_in_words(name: Any) -> None:
    for row, read in ((torsor.DHLink(name=name), torsor.from_dh), (torsor.MDHLink(-1, name=name), torsor.from_mdh)):
        with refused(where="robot: row 0", allowed="text"):
            read([row])


def test_mjcf_with_names_in_another_encoding_is_an_error_in_words(tmp_path: Path) -> None:
    text = (HINGE + "</mujoco>").encode().replace(b'name="j"', b'name="\xed\xa0\x80"')
    with refused(where="arm.xml", what="not well-formed XML"):
        load(tmp_path, text, "arm.xml")


def test_a_gear_whose_square_overflows_is_an_error_or_does_not_matter(tmp_path: Path) -> None:
    motor = '<actuator><motor joint="j" gear="1e200"{}/></actuator></mujoco>'
    assert load(tmp_path, HINGE + motor.format(""), "arm.xml").joint("j").rotor_inertia.tolist() == [0.0]
    with refused(argument="rotor_inertia", where="joint 'j'"):
        load(tmp_path, HINGE + motor.format(' armature="1"'), "arm.xml")


def test_mjcf_that_only_mujoco_reads_is_a_warning_unless_strict(tmp_path: Path) -> None:
    """A single ampersand is not XML; MuJoCo reads it unchanged."""
    odd = HINGE.replace('name="b"', 'name="b & c"') + "</mujoco>"
    with warned(where="arm.xml", what="; read by MuJoCo's own parser"):
        made = load(tmp_path, odd, "arm.xml")
    assert (made.name, made.mass, made.link_names) == ("m", 2.0, ("b & c",))
    with refused(where="arm.xml", what="not well-formed XML"):
        load(tmp_path, odd, "arm.xml", strict=True)
    with refused(what="a document type or entity declaration"):
        load(tmp_path, "<!DOCTYPE x>" + odd + "<", "arm.xml")


def test_control_characters_of_names_do_not_reach_the_terminal(tmp_path: Path, capsys: Any) -> None:
    name = "a\\u001b[2J\\u009b31m\\u202e"
    body = f'[[links]]\nname = "o"\n[[links]]\nname = "{name}"\nmass = 1.0\ninertia = [1, 1, 1, 0, 0, 0]\n'
    pin = f'[[joints]]\nname = "j{name}"\ntype = "revolute"\nparent = "o"\nchild = "{name}"\n'
    (tmp_path / "arm.toml").write_text(f'torsor = 1\nname = "{name}"\nunits.angle = "rad"\n{body}{pin}')
    assert main(["info", str(tmp_path / "arm.toml")]) == 0
    (tmp_path / "bad.toml").write_text(f'torsor = 1\nunits.angle = "rad"\n{body}"x{name}" = 1\n')
    assert main(["info", str(tmp_path / "bad.toml")]) == 1
    shown = "".join(capsys.readouterr())
    assert "a\\x1b[2J" in shown and not set("\x1b\x9b\u202e") & set(shown)
    with pytest.raises(ModelError) as refused:
        load(tmp_path, robot(link("base"), link("a\u009b2J", SOUND)))
    assert "\x9b" not in str(refused.value)


def test_text_without_control_characters_is_shown_as_it_is() -> None:
    for text in ("关节", "é🤖", "two\nlines", "[bold]", "a\u00a0b"):
        assert printable(text) == text


def test_messages_show_the_first_of_many_numbers() -> None:
    assert shortened(np.arange(78.0), 3) == "[0.0, 1.0, 2.0, ... 78 in all]"
    assert shortened(np.zeros((4, 4))) == str(np.zeros((4, 4)).tolist())
    assert shortened([[0.0] * 30] * 2, 2) == "[0.0, 0.0, ... 60 in all]"
    with pytest.raises(ModelError) as refused:
        torsor.base.checks.positive_vector([-1.0] * 200, 200, "arm", "kp")
    assert str(refused.value).endswith(", ... 200 in all]; allowed: positive numbers")


def test_an_empty_anchor_of_mjcf_is_refused_before_mujoco_reads_it(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    path = tmp_path / "empty.xml"
    path.write_text('<mujoco><equality><connect body1="a" body2="b" anchor=" "/></equality></mujoco>')
    with refused(where="empty.xml", what="<connect>: anchor is empty"):
        torsor.load(path)


@pytest.mark.parametrize(
    ("site", "key", "found"),
    [('pos="nan 0 0"', "0", "pose"), ("", "nan", "pin")],
)
def test_a_number_of_a_site_or_a_keyframe_that_is_none_is_refused_with_the_name_of_the_file(
    tmp_path: Path, site: str, key: str, found: str
) -> None:
    body = f'<body><joint name="pin"/><geom size="0.1"/><site name="tip" {site}/></body>'
    path, keys = tmp_path / "arm.xml", f'<keyframe><key name="home" qpos="{key}"/></keyframe>'
    path.write_text(f"<mujoco><worldbody>{body}</worldbody>{keys}</mujoco>")
    with (
        refused(found, where="arm.xml"),
        warned(what="MuJoCo warns: XML contains a 'NaN'"),
    ):
        torsor.load(path)


@pytest.mark.parametrize("suffix", ["toml", "urdf", "sdf", "xml", "usda"])
def test_a_robot_is_not_saved_as_a_folder_or_under_a_name_that_no_file_has(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"arm.{suffix}").mkdir()
    with refused(where=f"arm.{suffix}", allowed="a file"):
        torsor.library.two_link().save(tmp_path / f"arm.{suffix}")
    with refused(what="contains a null character"):
        torsor.library.two_link().save(tmp_path / f"a\0b.{suffix}")


SUFFIXES = (".urdf", ".sdf", ".world", ".xml", ".toml", ".osim", ".usda", ".usdc", ".usdz", ".xacro", ".yaml")
# As docs/contribute/security.md and docs/compute/formats.md say.
LIMITS = dict.fromkeys((".urdf", ".sdf", ".world", ".xml", ".mjcf", ".osim", ".xacro"), 16_000_000)
LIMITS |= {".toml": 64_000_000, ".yaml": 100_000} | dict.fromkeys((".usda", ".usd", ".usdc", ".usdz"), 256_000_000)


def _needed(suffix: str) -> None:
    """Skip a test without the package that reads a kind of file."""
    package = {".yaml": "yaml", ".xacro": "xacro"}.get(suffix, "pxr" if suffix.startswith(".usd") else "")
    if package:
        pytest.importorskip(package)


@pytest.mark.parametrize("suffix", LIMITS)
def test_the_largest_files_are_those_of_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """The files consist of zeros, which take no disk space; with one byte less, they are rejected for their content."""
    _needed(suffix)
    path, most = tmp_path / f"arm{suffix}", LIMITS[suffix]
    with path.open("wb") as file:
        file.truncate(most + 1)
    with refused(where=f"arm{suffix}", allowed=f"{most / 1e6:g} MB"):
        torsor.load(path)
    if most <= 16_000_000:  # the parsers of TOML and USD take their time
        os.truncate(path, most)
        with refused(where=f"arm{suffix}", what="not valid YAML" if suffix == ".yaml" else "not well-formed XML"):
            torsor.load(path)
    monkeypatch.setenv("TORSOR_LARGEST_FILE", "1000")
    with refused(allowed="0.001 MB"):
        torsor.load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_no_file_or_empty_is_refused_at_once(tmp_path: Path, suffix: str) -> None:
    _needed(suffix)
    (tmp_path / f"folder{suffix}").mkdir()
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"empty{suffix}").touch()
    words = {"folder": "a folder", "pipe": "a device or a pipe", "empty": f"empty{suffix}"}
    for name, message in words.items():
        with refused(message):
            torsor.load(tmp_path / f"{name}{suffix}")


DEEP = 3000  # more than Python's own calls may be deep
FRAMES = '<components><PhysicalOffsetFrame name="f">', "</PhysicalOffsetFrame></components>"
BODIES = (
    f'<BodySet><objects><Body name="b"><mass>1</mass>{FRAMES[0] * DEEP}{FRAMES[1] * DEEP}</Body></objects></BodySet>'
)
NESTED = '<model name="m">' * DEEP + "</model>" * DEEP
DEEP_FILES = {
    "deep.sdf": (f'<sdf version="1.7">{NESTED}</sdf>', "40 or fewer"),
    "deep.world": (f'<sdf version="1.7"><world>{NESTED}</world></sdf>', "40 or fewer"),
    "includes.sdf": (
        '<sdf version="1.7"><model name="m"><include><uri>includes.sdf</uri></include></model></sdf>',
        "40 or fewer",
    ),
    "deep.osim": (
        f'<OpenSimDocument Version="40500"><Model name="m">{BODIES}</Model></OpenSimDocument>',
        "20 or fewer",
    ),
    "old.osim": (
        '<OpenSimDocument Version="20201"><Model/></OpenSimDocument>',
        "20300 or later",
    ),
    "older.osim": ('<OpenSimDocument Version="1.9"><Model/></OpenSimDocument>', "an .osim"),
}


@pytest.mark.parametrize("name", DEEP_FILES)
def test_files_that_are_too_deep_or_too_old_are_errors_in_words(tmp_path: Path, name: str) -> None:
    text, message = DEEP_FILES[name]
    (tmp_path / name).write_text(text)
    with refused(where=name, allowed=message):
        torsor.load(tmp_path / name)
