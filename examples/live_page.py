"""Write a web page that computes torques and bearing forces of a UR5 while sliders move it, without a server.

The functions are exported as JavaScript and embedded in the page, which is a single file:

    python examples/live_page.py docs/live.html
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import torsor
from torsor.view.scene import Scene

START = [0.3, -1.2, 1.5, -0.9, -1.4, 0.0]
FUNCTIONS = ["inverse_dynamics", "joint_wrenches", "poses", "pose:ee_link"]
TEMPLATE = Path(__file__).with_suffix(".html")


def surfaces(robot: torsor.Robot) -> list[dict[str, Any]]:
    """Return the surfaces of the links: colours (0 to 255), points (m) in link axes, and corners of the triangles."""
    found = []
    for part in Scene.of(robot).shown:
        points, places = np.unique(part.surface.vertices.round(4), axis=0, return_inverse=True)
        corners = places.reshape(-1)[part.surface.faces].tolist()
        colour = [round(255 * value) for value in part.color[:3]]
        found.append({"link": part.link, "colour": colour, "points": points.tolist(), "corners": corners})
    return found


def page() -> str:
    """Return the page as HTML."""
    robot = torsor.library.ur5()
    with tempfile.TemporaryDirectory() as folder:
        module = torsor.export.js(robot, folder, FUNCTIONS)[0].read_text()
    count = robot.operation_count("inverse_dynamics")
    operations = f"{count.arithmetic} additions and multiplications, {count.trigonometric} sines and cosines"
    places = {"MODULE": module, "START": json.dumps(START), "OPERATIONS": json.dumps(operations)}
    places["SURFACES"] = json.dumps(surfaces(robot), separators=(",", ":"))
    text = TEMPLATE.read_text()
    for place, content in places.items():
        text = text.replace(f"/* {place} */", content)
    return text


if __name__ == "__main__":
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "live.html")
    path.write_text(page())
    print(path)
