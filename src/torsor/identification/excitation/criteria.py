"""Criteria of how well a motion shows the base parameters, as functions of the information matrix G (b, b).

G is the sum over all samples of Y_t^T Y_t, with Y_t (n, b) the regressor of the base parameters, each row divided by
the noise of its coordinate, plus the information of earlier measurements; covariance = G^-1. With its eigenvalues l:

    determinant   -(sum of log l) / b                                     (volume of the confidence ellipsoid)
    condition     log of (sum of l^8)^(1/8) (sum of l^-8)^(1/8) / 2       (about log of the condition number of Y)
    uncertainty   log of (sum of r^8)^(1/8), r_p = (G^-1)_pp / s_p^2, / 2 (about log of the largest relative deviation)

where s are the sizes of the parameters. Swevers, Ganseman, Tukel, De Schutter and Van Brussel 1997 (determinant and
condition); the power of 8 makes the largest of all numbers smooth.
"""

import re

import numpy as np

from torsor.base.arrays import Array

CRITERIA = ("condition", "determinant", "uncertainty")
POWER = 8
SINGULAR = 1e-14  # eigenvalues, relative to the largest, that count as zero
SMALLEST = 0.1  # of the largest parameter of its kind: the size of a parameter that is smaller, or zero
KINDS = (("mx", "my", "mz"), ("Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz"))


def criterion_of(name: str, G: Array, sizes: Array) -> tuple[float, Array]:
    """Return a criterion of G (b, b) and its gradient (b, b); infinite where G is singular.

    Example:
        >>> value, gradient = criterion_of("determinant", np.diag([1.0, 4.0]), np.ones(2))
        >>> round(value, 6), gradient.round(6).tolist()
        (-0.693147, [[-0.5, 0.0], [0.0, -0.125]])
    """
    values, U = np.linalg.eigh(G)
    if not values[0] > SINGULAR * values[-1]:
        return np.inf, np.zeros_like(G)
    if name == "uncertainty":
        covariance = (U / values) @ U.T
        relative = np.diagonal(covariance) / sizes**2
        largest = float(relative.max())
        powers = (relative / largest) ** POWER
        by_diagonal = powers / powers.sum() / np.diagonal(covariance) / 2
        gradient = -(covariance * by_diagonal) @ covariance
        return float(np.log(largest) / 2 + np.log(powers.sum()) / (2 * POWER)), np.asarray(gradient)
    if name == "determinant":
        cost, derivatives = -np.log(values).mean(), -1 / values / len(values)
    else:
        up, down = (values / values[-1]) ** POWER, (values[0] / values) ** POWER
        cost = (np.log(values[-1] / values[0]) + (np.log(up.sum()) + np.log(down.sum())) / POWER) / 2
        derivatives = (up / up.sum() - down / down.sum()) / values / 2
    return float(cost), np.asarray((U * derivatives) @ U.T)


def sizes_of(names: tuple[str, ...], values: Array) -> Array:
    """Return the sizes (b,) to which deviations of parameters are relative: their values, or a part of the largest.

    ``names`` are those of the parameters that represent the base parameters, such as "link2.mx".

    Example:
        >>> sizes_of(("a.mx", "b.my", "a.viscous"), np.array([2.0, 0.0, 0.1])).tolist()
        [2.0, 0.2, 0.1]
    """
    letters = [re.sub(r".*\.", "", name) for name in names]
    kinds = [next((own for own in KINDS if each in own), (each,)) for each in letters]
    sizes = np.abs(values)
    largest = np.array([max(size for size, other in zip(sizes, kinds, strict=True) if other == own) for own in kinds])
    return np.asarray(np.maximum(sizes, np.where(largest > 0, SMALLEST * largest, 1.0)))
