"""Robots and motions as plain data for all viewers: surfaces on links, and samples over time."""

from torsor.formats.meshes.triangles import Triangles
from torsor.simulation.timeline import Timeline, timeline
from torsor.view.scene.scene import Scene, Shown, home, palette, upwards

__all__ = ["Scene", "Shown", "Timeline", "Triangles", "home", "palette", "timeline", "upwards"]
