"""The charts of a page: those of the live viewer, as numbers that the page draws."""

from collections.abc import Callable, Sequence
from typing import Any

from torsor.simulation.timeline import Timeline
from torsor.view.scene.curves import charts, span, stances


def chart_data(
    played: Sequence[tuple[int, Timeline]], actors: list[dict[str, Any]], store: Callable[[Any], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the charts of motions. Curves have the index of their actor, ``times`` (s after its start) and ``values``.

    ``store`` stores an array in the page and returns the reference to it.
    """
    ordered = sorted(played, key=lambda each: "reference" not in actors[each[0]])  # errors are relative to the first
    content = []
    for name, each in charts([(line, "", "reference" in actors[at]) for at, line in ordered]).items():
        shown = []
        for title, curves in each.items():
            drawn = list[dict[str, Any]]()
            for curve in curves:
                drawn.append({"actor": ordered[curve.motion][0]})
                drawn[-1] |= {key: True for key in ("dashed", "pale") if getattr(curve, key)}
                drawn[-1] |= {"times": store(curve.times), "values": store(curve.values)}
            shown.append({"title": title, **span(title, curves)._asdict(), "curves": drawn})
        stance = stances(ordered[0][1], name)
        content.append({"name": name, "charts": shown} | ({"stance": stance} if stance else {}))
    return content
