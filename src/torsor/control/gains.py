"""Gains: numbers or vectors, positive and finite, or a bandwidth from which they follow."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.mechanism.values import frozen_array

__all__ = ["pd_gains", "positive"]

Array = NDArray[np.float64]


def positive(value: ArrayLike, n: int, where: str, name: str, *, or_zero: bool = False) -> Array:
    """Return n gains, all positive (or zero where that is allowed), from one number or n of them.

    Example:
        >>> positive(3.0, 2, "arm", "kp").tolist()
        [3.0, 3.0]
    """
    single = np.asarray(value, dtype=object).ndim == 0
    gains = frozen_array(value, () if single else (n,), where, name)
    if (gains < 0).any() or (not or_zero and (gains == 0).any()):
        allowed = "0 or more" if or_zero else "positive numbers"
        raise ModelError(describe(f"{name} is {gains.tolist()}", where=where, allowed=allowed))
    return np.full(n, gains) if single else gains


def pd_gains(
    n: int, where: str, kp: ArrayLike | None, kd: ArrayLike | None, bandwidth: ArrayLike | None, damping: ArrayLike
) -> tuple[Array, Array]:
    """Return (kp, kd), each (n,), of e'' + kd e' + kp e = 0: as given, or bandwidth^2 and 2 damping bandwidth.

    Example:
        >>> pd_gains(1, "arm", None, None, 10.0, 1.0)
        (array([100.]), array([20.]))
    """
    if bandwidth is not None and kp is None and kd is None:
        rate = positive(bandwidth, n, where, "bandwidth")
        return rate**2, 2 * positive(damping, n, where, "damping") * rate
    if bandwidth is None and kp is not None and kd is not None:
        return positive(kp, n, where, "kp"), positive(kd, n, where, "kd")
    names = {"kp": kp, "kd": kd, "bandwidth": bandwidth}
    given = ", ".join(name for name, value in names.items() if value is not None) or "none"
    raise ModelError(describe(f"gains given: {given}", where=where, allowed="kp and kd, or bandwidth (with damping)"))
