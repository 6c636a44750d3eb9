"""Browser viewer (viser, extra ``view``): robots with sliders, and results with playback."""

from torsor.view.live.viewer import Viewer, show

__all__ = ["Viewer", "show"]
