"""What an SDF file has and a mechanism does not: noted while the file is read, and named in one warning."""

from collections.abc import Iterable, Iterator
from typing import Any

from torsor.base.errors import describe, listing, warn
from torsor.base.faults import refuse_or_warn
from torsor.formats.sdf.values import text_of
from torsor.formats.xml import FLAGS

# By element: the children that are read, and those that have no influence on the motion of the model alone.
_READ = {
    "sdf": "model include world",
    "world": "model include frame gravity",
    "model": "link joint frame model include pose static self_collide allow_auto_disable enable_wind",
    "include": "uri name pose placement_frame static",
    "link": "pose inertial visual collision self_collide must_be_base_link enable_wind gravity kinematic",
    "inertial": "pose mass inertia density auto_inertia_params",
    "visual": "pose geometry material cast_shadows laser_retro transparency visibility_flags meta",
    "collision": "pose geometry surface laser_retro max_contacts density auto_inertia_params",
    "joint": """parent child pose axis axis2 gearbox_ratio gearbox_reference_body thread_pitch screw_thread_pitch
        physics drake:rotor_inertia drake:gear_ratio""",
    "axis": "xyz limit dynamics mimic use_parent_model_frame",
    "axis2": "xyz limit dynamics mimic use_parent_model_frame",
}
# What is left out and moves nothing by itself: named, but never refused.
_HARMLESS = """sensor plugin light gripper audio audio_sink audio_source projector battery particle_emitter scene
    physics gui atmosphere magnetic_field spherical_coordinates state population road actor"""


class Unread:
    """What is left out, with the lines where it occurs; one warning names all of it.

    Its kinds are "acting", what may act on the motion, "harmless", what does not, and "assumed", numbers that the file
    leaves to the defaults of SDF.

    Example:
        >>> unread = Unread("robot.sdf", strict=False)
        >>> unread.note("<cable>", None)
        >>> list(unread.found["acting"])
        ['<cable>']
    """

    def __init__(self, source: str, strict: bool):
        self.source, self.strict = source, strict
        self.found: dict[str, dict[str, list[int]]] = {"acting": {}, "harmless": {}, "assumed": {}}

    def note(self, what: str, element: Any, kind: str = "acting") -> None:
        """Record something that is left out, and its line."""
        self.found[kind].setdefault(what, []).append(getattr(element, "line", 0))

    def children(self, elements: Iterable[Any]) -> None:
        """Record all children of these elements, and of those in them, that are not read."""
        waiting = list(elements)
        while waiting:
            element = waiting.pop()
            known = _READ[element.tag].split()
            for child in element:
                if child.tag not in known:
                    self.note(f"<{child.tag}>", child, "harmless" if child.tag in _HARMLESS.split() else "acting")
                elif child.tag in _READ and child.tag not in ("model", "world"):  # these are listed by themselves
                    waiting.append(child)
            for what in _switches(element):
                self.note(what, element)

    def report(self) -> None:
        """Give the warning, or raise ModelError where reading is strict and something may act on the motion."""
        acting, harmless, assumed = (self.found[kind] for kind in ("acting", "harmless", "assumed"))
        parts = [f"defaults of SDF for {_lines(assumed)}"] if assumed else []
        if self.strict:
            parts += [f"not read: {_lines(acting)}"] if acting else []
            if parts:
                refuse_or_warn(describe("; ".join(parts), where=self.source), strict=True)
            parts, acting = [], {}
        parts += [f"not read: {_lines(acting | harmless)}"] if acting or harmless else []
        if parts:
            fix = "if they act on the motion, the robot here is not the one that the file describes"
            warn(describe("; ".join(parts), where=self.source, fix=fix if acting else ""))


def _switches(element: Any) -> Iterator[str]:
    """Yield switches of Gazebo that change the motion of a link: without gravity, or moved without forces."""
    if element.tag == "link":
        if not FLAGS.get(text_of(element, "gravity").lower(), True):
            yield "<gravity> that is off for a link"
        if FLAGS.get(text_of(element, "kinematic").lower(), False):
            yield "<kinematic>"


def _lines(found: dict[str, list[int]]) -> str:
    return listing([f"{what} ({len(lines)}, line {lines[0]})" for what, lines in found.items()], most=12)
