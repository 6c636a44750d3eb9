"""The live documentation page shows the same numbers as the library, and needs no network."""

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import torsor
from node import needs_node, node

ROOT = Path(__file__).parents[2]

# As much of a browser as the page uses: elements with text, a canvas that draws nothing, and two frames.
BROWSER = """
const elements = new Map(), nothing = new Proxy(() => nothing, { get: () => nothing, apply: () => nothing });
class Element {
    constructor() { this.style = {}; this.value = 0; this.clientWidth = this.clientHeight = 100; }
    set id(name) { elements.set(name, this); }
    append() {}
    addEventListener() {}
    getContext() { return new Proxy({}, { get: () => () => {}, set: () => true }); }
}
const frames = [];
globalThis.window = {};
globalThis.setInterval = () => {};
globalThis.requestAnimationFrame = (frame) => frames.push(frame);
globalThis.document = {
    createElement: () => new Element(),
    getElementById: (name) => { if (!elements.has(name)) new Element().id = name; return elements.get(name); },
};
document.getElementById("swing").value = 20;
document.getElementById("speed").value = 0.5;
"""
REPORT = """
frames[0](100);
const texts = (name) => robot.coordinates.map((_, k) => Number(elements.get(`${name}${k}`).textContent));
console.log(JSON.stringify([[...q], [...v], [...a], texts("tau"), texts("force"), texts("moment")]));
"""


@needs_node
@pytest.mark.parametrize("made", ["now", "before"])
def test_the_page_shows_the_torques_and_bearing_forces_of_the_library(made: str) -> None:
    text = (ROOT / "docs" / "live.html").read_text()
    if made == "now":
        text = runpy.run_path(str(ROOT / "examples" / "live_page.py"))["page"]()
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, flags=re.DOTALL)
    q, v, a, *found = (np.array(each) for each in json.loads(node(BROWSER + script + REPORT)))
    robot = torsor.library.ur5()
    wrenches = robot.joint_wrenches(q, v, a)
    wanted = [
        robot.inverse_dynamics(q, v, a),
        *(np.linalg.norm(wrenches[:, k], axis=1) for k in (slice(3, 6), slice(3))),
    ]
    assert np.abs(v).max() > 0.5  # it swings
    np.testing.assert_allclose(found[0], wanted[0], atol=0.0051)  # two digits are shown
    np.testing.assert_allclose(found[1:], wanted[1:], atol=0.051)


@needs_node
@pytest.mark.parametrize(
    ("clock", "shown"), [("0", ""), ("(now += 1)", "Inverse dynamics takes 200 ns per state in Java")]
)
def test_the_page_shows_no_time_that_the_browser_has_rounded_to_zero(clock: str, shown: str) -> None:
    text = (ROOT / "docs" / "live.html").read_text()
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, flags=re.DOTALL)
    fixed = f"let now = 0;\nglobalThis.performance = {{ now: () => {clock} }};\n"
    found = json.loads(
        node(BROWSER + fixed + script + 'console.log(JSON.stringify(element("time").textContent ?? ""));')
    )
    assert found.startswith(shown) if shown else found == ""


def test_the_page_of_the_documents_is_made_from_its_template_and_needs_no_network() -> None:
    page, template = (ROOT / "docs" / "live.html").read_text(), (ROOT / "examples" / "live_page.html").read_text()
    parts = re.split(r"/\* [A-Z]+ \*/", template)
    assert len(parts) == 5 and all(part in page for part in parts)
    assert not re.search(r"https?:|src=|href=|\bimport\b|fetch\(", page)
