"""The pages of the documents are those that ``examples/pages.py`` writes today."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from pages import Scripts, decoded
from torsor.view.pages import page
from torsor.view.scene import Timeline

ROOT = Path(__file__).parents[2]
# m and quaternions; optima differ between machines
CLOSE = {"platform": 1e-5, "walking": 2e-3, "tracking": 1e-5, "elastic": 1e-5, "quadruped": 1e-3}


def stored(name: str) -> str:
    return (ROOT / "docs" / "pages" / f"{name}.html").read_text(encoding="utf-8")


def script() -> Any:
    spec = importlib.util.spec_from_file_location("pages_of_the_documents", ROOT / "examples" / "pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", list(CLOSE))
def test_they_have_the_scripts_of_this_version(name: str) -> None:
    robot, still = torsor.library.planar_chain(1), np.zeros((2, 1))
    fresh = page(Timeline(robot, "still", np.arange(2.0), still, still, still)).html
    assert Scripts(stored(name)).scripts[2] == Scripts(fresh).scripts[2]
    allowed = re.compile(r"sha256-[^']*")  # of scripts and styles, in the policy of the page
    assert allowed.findall(stored(name)) == allowed.findall(fresh)


def test_the_time_of_a_walk_is_a_gait_cycle() -> None:
    assert [decoded(stored(name))["actors"][0].get("stride") for name in CLOSE] == [None, "right", None, None, None]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CLOSE))
def test_they_have_the_motions_that_the_script_computes(name: str) -> None:
    mine, theirs = decoded(script().PAGES[name]().html), decoded(stored(name))
    for own, other in zip(mine["actors"], theirs["actors"], strict=True):
        for key in ("times", "poses", "com"):
            assert own[key].shape == other[key].shape
            assert np.abs(own[key] - other[key]).max() < CLOSE[name]
    assert mine["robots"][0]["links"] == theirs["robots"][0]["links"]


@pytest.mark.slow
def test_the_motion_of_the_platform_is_consistent() -> None:
    motion = script().platform_motion()
    tree = motion.robot
    assert np.abs(motion.closure_error).max() < 1e-9 and np.abs(motion.closure_rate).max() < 1e-9
    moved = tree.integrate(motion.q[10], motion.v[10] * 1e-6)
    assert np.abs(tree.closed.error(moved)).max() < 1e-9
    found = tree.closed.forward_dynamics(motion.q, motion.v, motion.tau, coordinates="all")
    assert np.abs(found - motion.a).max() < 1e-6
