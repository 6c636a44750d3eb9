"""The filter of a filter line search (Fletcher and Leyffer 2002)."""


class Filter:
    """Earlier pairs (violation, objective): a new pair is rejected if one of them is at least as good in both.

    ``margin`` is the fraction of the violation by which a new pair has to be better.

    Example:
        >>> earlier = Filter(margin=1e-5)
        >>> earlier.add(1.0, 5.0)
        >>> earlier.accepts(0.5, 9.0), earlier.accepts(1.0, 5.0), earlier.accepts(2.0, 4.0)
        (True, False, True)
    """

    def __init__(self, margin: float):
        self.margin = margin
        self._earlier = list[tuple[float, float]]()

    def clear(self) -> None:
        """Remove all pairs."""
        self._earlier.clear()

    def add(self, violation: float, objective: float) -> None:
        """Add a pair."""
        least = self.margin * violation
        pair = violation - least, objective - least
        self._earlier = [each for each in self._earlier if each[0] < pair[0] or each[1] < pair[1]] + [pair]

    def accepts(self, violation: float, objective: float) -> bool:
        """Whether a pair is better than each earlier one in violation or objective."""
        return all(violation < v or objective < f for v, f in self._earlier)
