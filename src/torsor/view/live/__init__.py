"""The viewer in the browser (viser, the extra ``view``): robots with sliders, results that play, several at once."""

from torsor.view.live.viewer import Viewer, view

__all__ = ["Viewer", "view"]
