"""Data that MJCF cannot express, as JSON in <custom><text name="torsor"/>, which MuJoCo keeps and ignores.

| key | value |
|---|---|
| ``base`` | the body that is the base of the robot; without it, the base is ``world`` |
| ``links`` | by joint, the ``name`` and the ``pose`` in its body of the massless link between it and the next joint |
| ``meshes`` | visuals and collision shapes whose mesh files MuJoCo cannot read, each with its ``body`` |
"""

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import frozen_pose, name_of
from torsor.base.errors import ModelError, warn
from torsor.formats.search_path import Finder
from torsor.formats.writing import MeshNames
from torsor.formats.xml import add_element
from torsor.mechanism import Shape, Visual
from torsor.spatial import from_quaternion, make_pose, to_quaternion

NAME = "torsor"
_SURFACE = ("contype", "conaffinity", "friction", "priority")
_LAST_ROW = (0.0, 0.0, 0.0, 1.0)
_MAX_DISTANCE = 1e6  # m, distance of a link from its body beyond which digits are lost


class Note(NamedTuple):
    """The base if it is not ``world``, links that are not bodies (by joint), and meshes (with their bodies)."""

    base: str = ""
    links: Mapping[str, tuple[str, Array]] = MappingProxyType({})
    visuals: tuple[tuple[str, Visual], ...] = ()
    shapes: tuple[tuple[str, Shape], ...] = ()


def mesh_entry(body: str, shown: Visual | Shape, names: MeshNames) -> dict[str, Any]:
    """Return the note entry of a mesh visual or collision shape."""
    entry = {"body": body, "mesh": names.file(shown), "size": shown.size, "pose": shown.pose[:3].tolist()}
    entry |= {"name": shown.name} if shown.name else {}
    if isinstance(shown, Shape):
        return entry | {key: getattr(shown, key) for key in _SURFACE}
    return entry | ({} if shown.color is None else {"color": shown.color})


def write_note(root: ET.Element, base: str, links: dict[str, Any], meshes: list[dict[str, Any]]) -> None:
    """Add the note to the root element, unless it is empty."""
    content = {key: value for key, value in (("base", base), ("links", links), ("meshes", meshes)) if value}
    if content:
        add_element(add_element(root, "custom"), "text", name=NAME, data=json.dumps(content))


def read_note(data: str, path: Path) -> Note:
    """Return the content of a note. Warn if it cannot be read, for example because another program wrote it."""
    finder, visuals, shapes = Finder(path), list[tuple[str, Visual]](), list[tuple[str, Shape]]()
    try:
        content = json.loads(data)
        for entry in content.get("meshes", ()):
            result = finder.find(str(entry["mesh"]))
            file = str(result) if result is not None and result.is_file() else None
            settings: dict[str, Any] = {"mesh": str(entry["mesh"]), "path": file, "folders": finder.folders}
            settings |= {"pose": np.vstack([entry["pose"], _LAST_ROW]), "name": str(entry.get("name", ""))}
            body, size = str(entry["body"]), tuple(entry["size"])
            if "contype" in entry:
                surface = {key: entry[key] for key in _SURFACE if key in entry}
                shapes.append((body, Shape("mesh", size, **settings, **surface)))
            else:
                color = tuple(float(item) for item in entry["color"]) if "color" in entry else None
                visuals.append((body, Visual("mesh", size, **settings, color=color)))
        links = dict[str, tuple[str, Array]]()
        for joint, entry in content.get("links", {}).items():
            matrix = np.vstack([entry["pose"], _LAST_ROW])
            pose = frozen_pose(matrix, path.name, f"the link after {joint!r}", most=_MAX_DISTANCE)
            exact = make_pose(from_quaternion(to_quaternion(pose[:3, :3])), pose[:3, 3])  # whatever its digits are
            links[joint] = name_of(entry["name"], "link"), exact
        return Note(str(content.get("base", "")), links, tuple(visuals), tuple(shapes))
    except (ModelError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        found_text = f"<text name={NAME!r}> cannot be read ({error}); it is ignored"
        warn(found_text, where=path.name, fix="remove it, or save the robot again")
        return Note()
