"""The gains of PD feedback: given, or from a bandwidth and a damping ratio."""

from numpy.typing import ArrayLike

from torsor.arrays import Array
from torsor.checks import positive_vector
from torsor.errors import ModelError, describe


def pd_gains(
    n: int, where: str, kp: ArrayLike | None, kd: ArrayLike | None, bandwidth: ArrayLike | None, damping: ArrayLike
) -> tuple[Array, Array]:
    """Return (kp, kd), each (n,), of e'' + kd e' + kp e = 0: as given, or bandwidth^2 and 2 damping bandwidth.

    Example:
        >>> pd_gains(1, "arm", None, None, 10.0, 1.0)
        (array([100.]), array([20.]))
    """
    if bandwidth is not None and kp is None and kd is None:
        rate = positive_vector(bandwidth, n, where, "bandwidth")
        return rate**2, 2 * positive_vector(damping, n, where, "damping") * rate
    if bandwidth is None and kp is not None and kd is not None:
        return positive_vector(kp, n, where, "kp"), positive_vector(kd, n, where, "kd")
    names = {"kp": kp, "kd": kd, "bandwidth": bandwidth}
    given = ", ".join(name for name, value in names.items() if value is not None) or "none"
    raise ModelError(describe(f"gains given: {given}", where=where, allowed="kp and kd, or bandwidth (with damping)"))
