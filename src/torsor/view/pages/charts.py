"""The charts of a page: those of the live viewer, as numbers that the page draws."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torsor.simulation.timeline import Timeline
from torsor.view.scene.curves import charts, span, stances


def chart_data(
    played: Sequence[tuple[int, Timeline]], actors: list[dict[str, Any]], store: Callable[[Any], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the charts of motions, each with the index of its actor, and add the curves to the actors.

    The ``curves`` of an actor have ``times`` (T,) in s after its start, and ``values`` (n, T), whose rows the charts
    refer to. ``store`` stores an array in the page and returns the reference to it.
    """
    ordered = sorted(played, key=lambda each: "reference" not in actors[each[0]])  # errors are relative to the first
    values: list[list[Any]] = [[] for _ in ordered]
    content = []
    for name, each in charts([(line, "", "reference" in actors[at]) for at, line in ordered]).items():
        shown = []
        for title, curves in each.items():
            drawn = []
            for curve in curves:
                drawn.append({"actor": ordered[curve.motion][0], "row": len(values[curve.motion])})
                drawn[-1] |= {key: True for key in ("dashed", "pale") if getattr(curve, key)}
                values[curve.motion].append(curve.values)
                actors[drawn[-1]["actor"]]["curves"] = {"times": curve.times}
            shown.append({"title": title, **span(title, curves)._asdict(), "curves": drawn})
        stance = stances(ordered[0][1], name)
        content.append({"name": name, "charts": shown} | ({"stance": stance} if stance else {}))
    for (at, _), rows in zip(ordered, values, strict=True):
        if rows:
            times = actors[at]["curves"]["times"]
            actors[at]["curves"] = {"times": store(times), "values": store(np.stack(rows))}
    return content
