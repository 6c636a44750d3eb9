"""A page as a file or in a notebook, made from the template with its style, scripts and data."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from torsor._version import __version__
from torsor.base.checks import positive, whole_number
from torsor.base.files import write_text
from torsor.base.progress import Bar
from torsor.compiler.source import asset
from torsor.view.pages.content import content

SCRIPTS = (
    *("math", "data", "surfaces", "renderer", "camera", "ground", "closing"),
    *("beams", "actors", "stage", "chart", "panel", "app"),
)
TRIANGLES = 40_000  # triangles of the meshes of a robot
RATE = 60.0  # samples per second of a motion
# The page loads nothing, and only the scripts of the template run.
POLICY = "default-src 'none'; script-src {scripts}; style-src {style}; base-uri 'none'; form-action 'none'"
CONNECT = "\ntorsorKinematics({actor}, {{ {names} }});\n"


class Page:
    """A page as ``html`` text. Jupyter shows it in the notebook, and ``save`` writes it.

    Example:
        >>> from torsor.view.pages import page
        >>> shown = page(torsor.library.two_link())
        >>> shown.title, shown.html[:15], "<iframe" in shown._repr_html_()
        ('two_link', '<!DOCTYPE html>', True)
    """

    def __init__(self, title: str, html: str, height: int) -> None:
        self.title, self.html, self.height = title, html, height

    def __repr__(self) -> str:
        return f"<Page {self.title!r}: {len(self.html.encode()) / 1e6:.2f} MB>"

    def _repr_html_(self) -> str:
        # In a sandbox with its own origin, scripts of the page cannot reach the notebook.
        frame = f'sandbox="allow-scripts" width="100%" height="{self.height}" style="border: 0"'
        return f'<iframe {frame} srcdoc="{escape(self.html)}"></iframe>'

    def save(self, path: str | Path) -> Path:
        """Write the page to a file and return its path. An interrupted call leaves no partial file."""
        target = Path(path)
        write_text(target, self.html)
        return target


def page(
    what: Any,
    path: str | Path | None = None,
    *,
    title: str = "",
    reference: Any = None,
    q: ArrayLike | None = None,
    trails: Sequence[str] | None = None,
    rate: float = RATE,
    triangles: int = TRIANGLES,
    meshes: bool = True,
    spacing: float | None = None,
    height: int = 600,
    progress: bool | None = None,
) -> Page:
    """Return a page that shows robots and motions in a browser, and write it to ``path`` if that is given.

    The page is one HTML file that needs no network and no server. ``what`` is a robot, a trajectory, a rollout, a
    motion, a stride, a measured gait, an identification, a list of these, or a dict with their titles as keys. All
    motions of a rollout or trajectory with leading axes are played at once. They keep their places, or are drawn in a
    grid if they start at the same place; ``spacing`` (m) is that of the grid, and 0 means no grid. Robots have a
    slider per coordinate, or per active coordinate with closed loops. ``reference`` is a further item, which is drawn
    as an outline. ``q`` (nq,) is the initial posture of robots with sliders. ``trails`` contains the links and frames
    whose paths are drawn, by default the ends of the tree. Motions have ``rate`` samples per second, and at most 2000
    samples; all motions of a batch have at most 6.5 million positions, which are rounded to 1/65535 of the range of a
    coordinate. The meshes of a robot are simplified to about ``triangles`` triangles; ``meshes=False`` draws rods
    instead. ``height`` (pixels) is the frame height in a notebook. ``progress`` is True, False, or None to show a
    progress bar only in a terminal.

    Example:
        >>> fall = torsor.simulate(torsor.library.planar_chain(2), duration=0.5)
        >>> page({"a fall": fall, "again": fall}).title
        'planar_chain'
    """
    positive(rate, "page", "rate")
    whole_number(triangles, "page", "triangles", least=100)
    whole_number(height, "page", "height", least=100)
    count = (len(what) if isinstance(what, Mapping | list | tuple) else 1) + (reference is not None)
    with Bar(count, progress, "writing the page") as bar:
        filled = content(what, q, float(rate), triangles, trails, meshes, bar, reference, spacing)
    names = list(dict.fromkeys(robot["name"] for robot in filled.data["robots"]))
    heading = title or (filled.data["actors"][0]["title"] if len(filled.data["actors"]) == 1 else ", ".join(names))
    script = "(() => {\n'use strict';\n" + "".join(asset(f"{name}.js", __package__) for name in SCRIPTS) + "})();\n"
    modules = [text + _connection(actor, text) for actor, text in filled.modules.items()]
    style = asset("page.css", __package__)
    policy = POLICY.format(scripts=" ".join(map(_digest, [script, *modules])), style=_digest(style))
    places = {
        "POLICY": policy,
        "VERSION": __version__,
        "TITLE": escape(heading),
        "SUBTITLE": escape(_subtitle(filled.data)),
        "STYLE": style,
        "CONTENT": _inert(filled.data),
        "NUMBERS": filled.numbers.base64(),
        "SCRIPT": script,
        "MODULES": "\n".join(f'<script type="module">{text}</script>' for text in modules),
    }
    html = re.sub("@([A-Z]+)@", lambda place: places[place[1]], asset("page.html", __package__))
    made = Page(heading, html, height)
    if path is not None:
        made.save(path)
    return made


def _digest(text: str) -> str:
    """Return the content security policy source that allows a script or a style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _inert(data: dict[str, Any]) -> str:
    """Return data as JSON in which no name can close the enclosing script element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _connection(actor: int, module: str) -> str:
    """Return the statement that passes the functions of a module to the page."""
    names = re.findall(r"^export function (\w+)\(", module, flags=re.MULTILINE)
    return CONNECT.format(actor=actor, names=", ".join(names))


def _subtitle(data: dict[str, Any]) -> str:
    robots, actors = data["robots"], data["actors"]
    # Joints with several axes have massless links between the axes, which are no bodies.
    counts = dict.fromkeys(len(robot["labels"]) for robot in robots[:2])
    bodies = " and ".join(f"{count} bod{'y' if count == 1 else 'ies'}" for count in counts)
    moving = sum(actor.get("low", {"shape": [1]})["shape"][0] for actor in actors if "times" in actor)
    motions = f", {moving:,} motion{'s' if moving > 1 else ''}" if moving else ""
    return f"{bodies}{motions}. Drag to turn, right drag to move, wheel to zoom."
