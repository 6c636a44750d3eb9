"""FMUs as files: valid by the schemas of the standard, complete, reproducible; rejected input."""

import json
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.cli.main import main

ARM = torsor.library.two_link()


def member(path: Path, name: str) -> str:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name).decode()


def test_units_of_parameters_follow_the_joint(tmp_path: Path) -> None:
    paths = ["joints.joint3.viscous", "joints.joint2.viscous", "joints.joint3.rotor_inertia", "links.0.inertia.xx"]
    (path,) = torsor.export.fmi(torsor.library.stanford(), tmp_path / "a.fmu", parameters=paths, binary=False)
    root = ET.fromstring(member(path, "modelDescription.xml"))
    units = {each.get("name"): each.get("unit") for each in root.iter("Float64")}
    assert [units[name] for name in paths[:3]] == ["N.s/m", "N.m.s/rad", "kg"]
    assert units["links.'0'.inertia.xx"] == "kg.m2" and units["q.joint3"] == "m" and units["tau.joint3"] == "N"


def test_equal_robots_make_equal_files_and_others_another_token(tmp_path: Path) -> None:
    one, two = (torsor.export.fmi(ARM, tmp_path / f"{k}.fmu", binary=False)[0] for k in range(2))
    assert one.read_bytes() == two.read_bytes()
    (other,) = torsor.export.fmi(ARM.with_gravity((0, 1, 0)), tmp_path / "other.fmu", binary=False)
    tokens = [ET.fromstring(member(each, "modelDescription.xml")).get("instantiationToken") for each in (one, other)]
    assert None not in tokens and tokens[0] != tokens[1]
    assert tokens[0] in member(one, "sources/robot.h")


@pytest.mark.parametrize("version", [2, 3])
def test_all_sources_are_listed(version: int, tmp_path: Path) -> None:
    (path,) = torsor.export.fmi(ARM, tmp_path / "a.fmu", version=version, binary=False)
    listing = "modelDescription.xml" if version == 2 else "sources/buildDescription.xml"
    root = ET.fromstring(member(path, listing))
    listed = {each.get("name") for each in root.iter("File" if version == 2 else "SourceFile")}
    with zipfile.ZipFile(path) as archive:
        assert listed == {Path(name).name for name in archive.namelist() if name.endswith(".c")}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": "no/arm.fmu"}, "its folder does not exist"),
        ({"path": "arm.zip"}, "arm.fmu"),
        ({"path": "a\0b.fmu"}, "a null character"),
        ({"path": 3}, "path"),
        ({"path": ""}, "path"),
        ({"version": 1}, "version"),
        ({"version": True}, "version"),
        ({"version": "3.0"}, "version"),
        ({"inverse": "yes"}, "inverse"),
        ({"names": ["jacobian:link2"]}, "jacobian:link2"),
        ({"names": ["pose"]}, "write 'pose:LINK'"),
        ({"names": ["pose:nose"]}, "nose"),
        ({"names": ["joint_wrenches:base"]}, "base"),
        ({"names": ["kinetic_energy:link1"]}, "write 'kinetic_energy'"),
        ({"names": ["pose:link1", "pose:link1"]}, "named twice"),
        ({"names": [3]}, "3"),
        ({"parameters": ["links.link9.mass"]}, "no such link"),
        ({"parameters": {"tau.joint1": "gravity.x"}}, "two variables are named 'tau.joint1'"),
        ({"external": ["base"]}, "base"),
        ({"external": ["link1", "link1"]}, "external"),
        ({"q0": [0.0]}, "q0"),
        ({"q0": [[0.0, 0.0]]}, "one state"),
        ({"v0": [0.0, np.inf]}, "v0"),
        ({"step": 0.0}, "step"),
        ({"step": 1e-12}, "1e-09 or more"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, Any], words: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with refused(words):
        torsor.export.fmi(ARM, **({"path": "arm.fmu", "binary": False} | options))
    assert not list(tmp_path.iterdir())


def test_robots_without_such_a_model_are_refused(tmp_path: Path) -> None:
    with refused(fix="torsor.export.c"):
        torsor.export.fmi(torsor.library.four_bar(), tmp_path / "a.fmu", inverse=True)
    rigid = ARM.fix("joint1").fix("joint2")
    with refused(what="no coordinate"):
        torsor.export.fmi(rigid, tmp_path / "a.fmu")


def test_an_existing_file_is_replaced_whole_or_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.fmu"
    torsor.export.fmi(ARM, path, binary=False)
    first = path.read_bytes()
    with refused(what="the file exists"):
        torsor.export.fmi(ARM, path, binary=False, overwrite=False)
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused(fix="binary=False"):
        torsor.export.fmi(ARM, path)
    monkeypatch.delenv("CC")
    with refused(fix="binary=False"):
        torsor.export.fmi(ARM, path)
    assert path.read_bytes() == first
    torsor.export.fmi(ARM, path, version=2, binary=False)
    assert zipfile.is_zipfile(path) and path.read_bytes() != first and len(list(tmp_path.iterdir())) == 1


def test_a_file_of_another_program_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.fmu"
    path.write_text("mine")
    with refused(what="not written by Torsor"):
        torsor.export.fmi(ARM, path, binary=False)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", '<fmiModelDescription generationTool="Another" modelName="Torsor"/>')
    with refused(what="not written by Torsor"):
        torsor.export.fmi(ARM, path, binary=False)
    assert zipfile.ZipFile(path).namelist() == ["modelDescription.xml"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("#!/bin/sh\necho 'no space left' >&2\nexit 1\n", "compiler failed: no space left"),
        ("#!/bin/sh\n", "compiler failed: it did not write a library"),
        ("nonsense", "Exec format error"),
    ],
)
def test_a_compiler_that_fails_is_quoted(script: str, words: str, tmp_path: Path, monkeypatch: Any) -> None:
    fake = tmp_path / "compiler"
    fake.write_text(script)
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))
    with refused(words):
        torsor.export.fmi(ARM, tmp_path / "a.fmu")


def test_a_compiler_with_an_open_quotation_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", 'gcc "-O2')
    assert main(["export", "two_link", str(tmp_path / "a.fmu"), "--to", "fmi"]) == 1
    assert "CC is 'gcc \"-O2': No closing quotation" in capsys.readouterr().err


def test_the_command_writes_an_fmu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "arm.fmu"
    command = ["export", "two_link", str(path), "--to", "fmi", "--no-binary", "--q0", "0.5", "-1"]
    more = ["--fmi-version", "2", "--names", "pose:link2", "--parameters", "links.link2.mass", "--step", "0.002"]
    assert main([*command, *more, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == [str(path)]
    starts = {
        each.get("name"): each.find("Real").get("start")  # type: ignore[union-attr]
        for each in ET.fromstring(member(path, "modelDescription.xml")).iter("ScalarVariable")
    }
    assert (starts["q.joint1"], starts["q.joint2"], starts["step"]) == ("0.5", "-1.0", "0.002")
    assert "pose.link2.x" in starts and "links.link2.mass" in starts
    assert main(command) == 1
    assert "--force" in capsys.readouterr().err
    assert main([*command, "--force", "--inverse"]) == 0
    assert main(["export", "two_link", str(tmp_path / "c"), "--no-binary"]) == 1
    assert "--to c does not support --no-binary" in capsys.readouterr().err
