"""Contact pairs of MJCF, which collide whatever their masks with friction of their own, as masks and friction."""

from collections import Counter, defaultdict
from typing import Any

import numpy as np

from torsor.mechanism.parts import ALL_BITS

_BODY_BITS = 16  # of the number of the second body in a signature


class Surfaces:
    """The masks (geoms, 2), friction and priority of the geoms of a model, changed so that <pair> has its effect.

    While the masks do not allow all pairs, the geom in most of the others gets an unused bit of ``contype``, and its
    partners get the same bit of ``conaffinity``. The friction of a pair becomes that of its geom without masks, which
    gets the highest priority. ``omitted`` are the names of the pairs whose effect is lost, by reason, and ``paired``
    are the geoms of all pairs.
    """

    def __init__(self, model: Any, names: list[str]):
        self.masks = np.stack([model.geom_contype, model.geom_conaffinity], axis=1).astype(np.int64)
        self.friction, self.priority = np.array(model.geom_friction[:, 0]), np.array(model.geom_priority)
        self.omitted: dict[str, list[str]] = defaultdict(list)
        pairs = list(zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True))
        self.paired = {geom for pair in pairs for geom in pair}
        only = {geom for geom in self.paired if not self.masks[geom].any()}
        self._allow(pairs, names)
        self._set_friction(model, pairs, names, only)
        excluded = set(np.asarray(model.exclude_signature).tolist())
        for pair, name in zip(pairs, names, strict=True):
            a, b = sorted(int(model.body_weldid[model.geom_bodyid[geom]]) for geom in pair)
            above = {int(model.body_weldid[model.body_parentid[body]]): body for body in (a, b)}
            bodies = sorted(int(model.geom_bodyid[geom]) for geom in pair)
            barred = above.get(a) == b or above.get(b) == a or (bodies[0] << _BODY_BITS) + bodies[1] in excluded
            if a and a != b and barred:  # contact with the base does not depend on this
                self.omitted["contact pairs of neighbouring or excluded bodies"].append(name)

    def _touch(self, a: int, b: int) -> bool:
        return bool(self.masks[a, 0] & self.masks[b, 1] or self.masks[b, 0] & self.masks[a, 1])

    def _allow(self, pairs: list[tuple[int, int]], names: list[str]) -> None:
        """Set bits of the masks for all pairs that do not touch."""
        used = int(np.bitwise_or.reduce(self.masks, axis=None)) if len(self.masks) else 0
        free = [1 << k for k in range(ALL_BITS.bit_length()) if not used >> k & 1]
        waiting = {pair: name for pair, name in zip(pairs, names, strict=True) if not self._touch(*pair)}
        while waiting and free:
            hub, bit = Counter(geom for pair in waiting for geom in pair).most_common(1)[0][0], free.pop()
            self.masks[hub, 0] |= bit
            for pair in [pair for pair in waiting if hub in pair]:
                self.masks[pair[1] if pair[0] == hub else pair[0], 1] |= bit
                del waiting[pair]
        if waiting:
            self.omitted["contact pairs without an unused bit in the masks"] += waiting.values()

    def _set_friction(self, model: Any, pairs: list[tuple[int, int]], names: list[str], only: set[int]) -> None:
        """Give the friction of pairs to geoms that collide in pairs ``only``, unless the geoms already have it."""
        wanted, top = defaultdict[int, set[float]](set), int(self.priority.max(initial=0)) + 1
        values = np.array(model.pair_friction)[:, :2]
        for pair, (friction, _) in zip(pairs, values.tolist(), strict=True):
            for geom in only.intersection(pair):
                wanted[geom].add(friction)
        for pair, (friction, _) in zip(pairs, values.tolist(), strict=True):
            for geom in only.intersection(pair):
                if self._between(pair) != friction and wanted[geom] == {friction}:
                    self.friction[geom], self.priority[geom] = friction, top
        for pair, name, (friction, other) in zip(pairs, names, values.tolist(), strict=True):
            if self._between(pair) != friction or friction != other:
                self.omitted["friction of contact pairs"].append(name)

    def _between(self, pair: tuple[int, int]) -> float:
        """Return the friction of two geoms, as ``Shape.friction_with`` does."""
        return float(max((self.priority[geom], self.friction[geom]) for geom in pair)[1])
