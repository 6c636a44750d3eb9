"""The views that robots and results share, as methods: each loads ``torsor.view`` only when it is called."""

from importlib import import_module
from pathlib import Path
from typing import Any


def _view(module: str) -> Any:
    return import_module(f"torsor.view.{module}")


class Viewable:
    """A mixin of robots and of results that are motions: a viewer in the browser, an offline page, a figure."""

    def view(self, **options: Any) -> Any:
        """Open the viewer in the browser (viser, the extra ``view``) and return it; see ``torsor.view.live.view``."""
        return _view("live").view(self, **options)

    def page(self, path: str | Path | None = None, **options: Any) -> Any:
        """Write a self-contained HTML page that shows this offline; see ``torsor.view.page.page``."""
        return _view("page").page(self, path, **options)

    def draw(self, q: Any = None, path: str | Path | None = None, **options: Any) -> Any:
        """Return a figure of a robot in the posture ``q``, or of a motion; see ``torsor.view.pictures.draw``."""
        return _view("pictures").draw(self, q, path, **options)


class Playable(Viewable):
    """A mixin of results that are motions: also animations."""

    def animate(self, path: str | Path, **options: Any) -> Path:
        """Write a .gif or .mp4 of the motion (matplotlib, the extra ``plot``); see ``torsor.view.pictures.animate``."""
        found: Path = _view("pictures").animate(self, path, **options)
        return found
