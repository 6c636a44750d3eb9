"""The text of small URDF files."""

from pathlib import Path

import torsor

SOUND = '<inertial><mass value="2"/><inertia ixx="0.3" iyy="0.2" izz="0.4"/></inertial>'


def link(name: str, inside: str = SOUND) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, parent: str, child: str, inside: str = '<axis xyz="0 0 1"/>', kind: str = "continuous") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def robot(*parts: str) -> str:
    return "\n".join(['<robot name="tested">', *parts, "</robot>"])


def arm(hand: str = SOUND, elbow: str = '<axis xyz="0 0 1"/>', kind: str = "continuous", extra: str = "") -> str:
    """Return a robot of one joint: its link is on line 3 and its joint on line 4."""
    return robot('<link name="base"/>', link("hand", hand), joint("elbow", "base", "hand", elbow, kind), extra)


def inertial(mass: str = "2", inertia: str = 'ixx="0.3" iyy="0.2" izz="0.4"', origin: str = "") -> str:
    return f'<inertial>{origin}<mass value="{mass}"/><inertia {inertia}/></inertial>'


def load(folder: Path, text: str | bytes, name: str = "arm.urdf", **settings) -> torsor.Robot:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return torsor.load(path, **settings)


def mimic(inside: str) -> str:
    return f'<axis xyz="0 0 1"/>{inside}'


def pair(first: str = "", second: str = "", kinds: tuple[str, str] = ("continuous", "continuous")) -> str:
    """Return a chain of two joints with additional elements inside of each."""
    return robot(
        '<link name="base"/>',
        link("upper"),
        link("lower"),
        joint("shoulder", "base", "upper", '<axis xyz="0 0 1"/>' + first, kinds[0]),
        joint("elbow", "upper", "lower", '<origin xyz="1 0 0"/><axis xyz="0 0 1"/>' + second, kinds[1]),
    )
