"""Filters: what a step must be better than (Fletcher and Leyffer 2002)."""

__all__ = ["Filter"]


class Filter:
    """Pairs (violation, objective) of the past: one that is worse than any of them in both is refused.

    Example:
        >>> past = Filter(share=1e-5)
        >>> past.add(1.0, 5.0)
        >>> past.takes(0.5, 9.0), past.takes(1.0, 5.0), past.takes(2.0, 4.0)
        (True, False, True)
    """

    def __init__(self, share: float):
        self.share = share
        self._past = list[tuple[float, float]]()

    def clear(self) -> None:
        """Forget the past."""
        self._past.clear()

    def add(self, violation: float, objective: float) -> None:
        """Remember a pair, with a margin of a share of the violation."""
        margin = self.share * violation
        pair = violation - margin, objective - margin
        self._past = [each for each in self._past if each[0] < pair[0] or each[1] < pair[1]] + [pair]

    def takes(self, violation: float, objective: float) -> bool:
        """Whether a pair is better than each of the past in one of both."""
        return all(violation < v or objective < f for v, f in self._past)
