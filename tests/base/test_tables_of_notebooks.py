"""Notebooks and ``print`` show short tables of robots and results; names from files cannot inject HTML."""

from dataclasses import replace

import pytest

import torsor
from torsor import library

from . import small as made

EVIL = "<script>alert(1)</script>\x1b[2J"


@pytest.mark.parametrize("kind", made.KINDS)
def test_every_result_has_a_table_for_notebooks(kind: str) -> None:
    html = made.results()[kind]._repr_html_()
    assert html.startswith("<div><b>") and html.count("<table") == html.count("</table>") > 0


def test_print_of_a_robot_is_a_short_table() -> None:
    lines = str(library.six_axis_arm()).splitlines()
    assert lines[0] == "Robot 'six_axis_arm': 6 moving links, nq=6, nv=6"
    assert len([line for line in lines if line.startswith("joint")]) == 7  # the head and six joints
    assert "-2.793 .. 2.793 rad" in lines[4] and "97.6 N m" in lines[4]
    assert len(str(library.human()).splitlines()) < 25
    assert "... 42 more" in str(library.human())
    assert "leg6" in str(library.gough_stewart())
    assert repr(library.two_link()) == "<Robot 'two_link': 2 moving links, nq=2, nv=2>"


def test_names_are_escaped() -> None:
    arm = library.two_link()
    joint = replace(arm.joints[0], name=EVIL, coordinate=EVIL)
    robot = torsor.Robot(EVIL, arm.base, arm.links, (joint, arm.joints[1]))
    for html in (robot._repr_html_(), torsor.simulate(robot.to(device="casadi"), duration=0.002)._repr_html_()):
        assert "<script" not in html and "&lt;script&gt;" in html and "\x1b" not in html
    assert "\x1b" not in str(robot)


def test_figures_are_pictures_in_notebooks_without_any_setting() -> None:
    figure = torsor.view.draw(library.two_link(), [0.3, 0.6])
    assert figure._repr_png_().startswith(b"\x89PNG")
