"""The viewer in the browser (viser, the extra ``view``): robots with sliders, results that play, several at once."""

from torsor.view.live.viewer import Viewer, show

__all__ = ["Viewer", "show"]
