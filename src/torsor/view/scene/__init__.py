"""Robots and motions as a viewer sees them: surfaces on links, and samples over time. Nothing here knows a viewer."""

from torsor.view.scene.posture import home, upwards
from torsor.view.scene.scene import Scene, Shown, palette
from torsor.view.scene.timeline import Timeline, timeline
from torsor.view.scene.triangles import Triangles

__all__ = ["Scene", "Shown", "Timeline", "Triangles", "home", "palette", "timeline", "upwards"]
