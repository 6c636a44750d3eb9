"""Runs an item: its rows, its figure, how long it took; an error is a failure, and Ctrl-C skips it."""

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torsor.base.figures import new_figure
from torsor.base.interrupts import Stoppable
from torsor.reproduce.item import Item, Outcome, Row, Verdict, verdict


@dataclass(frozen=True)
class Result:
    """What came out of an item: None in place of an outcome and a verdict if it was skipped."""

    item: Item
    outcome: Outcome | None
    verdict: Verdict | None
    seconds: float

    @property
    def rows(self) -> Sequence[Row]:
        """The rows, none if it was skipped."""
        return () if self.outcome is None else self.outcome.rows

    @property
    def has_figure(self) -> bool:
        """Whether there is a figure to draw."""
        return self.outcome is not None and self.outcome.draw is not None

    def figure(self) -> Any:
        """Return the figure (matplotlib, the extra ``plot``)."""
        assert self.outcome is not None and self.outcome.draw is not None
        figure = new_figure(*self.outcome.size)
        self.outcome.draw(figure)
        return figure

    def png(self, dpi: int = 100) -> bytes:
        """Return the figure as the content of a PNG file."""
        file = io.BytesIO()
        self.figure().savefig(file, dpi=dpi, format="png", pil_kwargs={"optimize": True})
        return file.getvalue()

    @property
    def because(self) -> str:
        """Why printed and ours differ, or which data are missing."""
        if self.verdict is Verdict.MISSING:
            return self.item.missing
        return self.item.reason if self.verdict is Verdict.DIFFERS else ""


def run(item: Item) -> Result:
    """Compute an item. Ctrl-C skips it; an error of the library is a failure, with its words in a row.

    Example:
        >>> from torsor.reproduce.registry import find
        >>> run(find(["lie/two-link"])[0]).verdict.value
        'agrees'
    """
    start = time.perf_counter()
    try:
        with Stoppable():
            outcome = item.compute()
    except KeyboardInterrupt:
        return Result(item, None, None, time.perf_counter() - start)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        outcome = Outcome([Row("error", "", text, "", Verdict.FAILS)])
    return Result(item, outcome, verdict(item, outcome), time.perf_counter() - start)
