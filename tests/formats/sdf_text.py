"""Short SDF files for tests."""

from pathlib import Path

import torsor

INERTIAL = """<inertial><pose>0.1 0.05 -0.1 0 0 0</pose><mass>2</mass><inertia><ixx>0.2</ixx><iyy>0.25</iyy>
<izz>0.3</izz><ixy>0.01</ixy><ixz>0.03</ixz><iyz>-0.02</iyz></inertia></inertial>"""
BODY = (2.0, (0.1, 0.05, -0.1), [[0.2, 0.01, 0.03], [0.01, 0.25, -0.02], [0.03, -0.02, 0.3]])


def link(name: str, pose: str = "", more: str = "", relative_to: str = "") -> str:
    """Return a <link>; an empty pose is left out."""
    to = f' relative_to="{relative_to}"' if relative_to else ""
    at = f"<pose{to}>{pose}</pose>" if pose else ""
    return f'<link name="{name}">{at}{INERTIAL}{more}</link>\n'


def joint(kind: str, parent: str, child: str, more: str = "", name: str = "j") -> str:
    """Return a <joint>; its axis is z unless ``more`` has one."""
    axis = "" if "<axis>" in more or kind in ("fixed", "ball") else "<axis><xyz>0 0 1</xyz></axis>"
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{axis}{more}</joint>\n'


def model(*parts: str, version: str = "1.7", name: str = "m", around: str = "{}", attributes: str = "") -> str:
    """Return a file with one model; ``around`` is the text around it."""
    text = f'<model name="{name}"{attributes}>\n{"".join(parts)}</model>'
    return f'<sdf version="{version}">{around.format(text)}</sdf>'


def read(tmp_path: Path, text: str, file: str = "robot.sdf", **options: object) -> torsor.Robot:
    """Return the robot of an SDF file, whose functions need no compilation."""
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return torsor.load(path, **options).to(device="casadi")  # type: ignore[arg-type]
