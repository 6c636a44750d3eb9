"""Views of robots and motions: live viewer, offline pages, figures, animations, reports and tables."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from torsor.base.registry import register
from torsor.view.bearings import BearingLoads, bearing_loads, bearing_table
from torsor.view.pictures import animate, draw, plot_motion
from torsor.view.tables import count_table, counted, drive_table, joint_table, link_table, motion_table, state_table

if TYPE_CHECKING:
    from torsor.view.live import show
    from torsor.view.pages import page
    from torsor.view.report import write_report

__all__ = [
    "BearingLoads", "animate", "bearing_loads", "bearing_table", "count_table", "counted", "draw", "drive_table",
    "joint_table", "link_table", "motion_table", "page", "plot_motion", "show", "state_table", "write_report",
]  # fmt: skip

# Modules that are imported when their names are first used.
_HOMES = {"page": "pages", "show": "live", "write_report": "report"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(f"torsor.view.{_HOMES[name]}"), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _embedded(what: Any, title: str) -> str:
    """Return a page as HTML that can be part of another page, such as a report."""
    from torsor.view.pages import page

    return page(what, title=title)._repr_html_()


register("page", "html", _embedded)
