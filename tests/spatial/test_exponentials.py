"""Exponentials, logarithms and their Jacobians against series in fifty digits, SciPy's expm, and differences."""

from collections.abc import Callable

import casadi as ca
import mpmath
import numpy as np
import pytest
from scipy.linalg import expm

from refusals import refused
from torsor import spatial
from torsor.spatial import (
    ad,
    adjoint,
    exp_se3,
    exp_so3,
    from_quaternion,
    inverse_left_jacobian,
    inverse_pose,
    inverse_right_jacobian,
    left_jacobian,
    log_se3,
    log_so3,
    make_pose,
    quaternion_exp,
    quaternion_product,
    right_jacobian,
    skew,
    to_quaternion,
)

# Angles: zero, denormal, tiny, about the change from series to closed forms, about pi, and above
ANGLES = [0.0, 1e-300, 1e-12, 1e-6, 3e-3, 0.4, 1 - 1e-9, 1 + 1e-9, 2.0, 3.0, np.pi - 1e-4, np.pi - 1e-10, np.pi]
ABOVE = [np.pi + 1e-4, 5.0, 6.2]


def twists(angles: list[float]) -> np.ndarray:
    """Return twists (n, 6) with these angles, about axes in every direction."""
    rng = np.random.default_rng(2)
    axes = rng.normal(size=(len(angles), 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return np.hstack([axes * np.array(angles)[:, None], rng.normal(size=(len(angles), 3))])


def in_fifty_digits(A: np.ndarray, first: int, power: int = 1) -> np.ndarray:
    """Return the sum of A^k / (k + first)!, the exponential (0) or the left Jacobian (1), or its inverse (power -1)."""
    with mpmath.workdps(50):
        exact, n = mpmath.matrix(A.tolist()), len(A)
        term, total = mpmath.eye(n) / mpmath.factorial(first), mpmath.zeros(n)
        for k in range(65):
            total = total + term
            term = term * exact / (k + 1 + first)
        return np.array((total**power).tolist(), dtype=float)


def hat(V: np.ndarray) -> np.ndarray:
    return np.block([[skew(V[:3]), V[3:, None]], [np.zeros((1, 4))]])


def assert_close(actual: np.ndarray, expected: np.ndarray, ulps: float = 4) -> None:
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(actual, expected, rtol=0, atol=ulps * 2.3e-16 * scale)


@pytest.mark.parametrize("V", twists([*ANGLES, *ABOVE]))
def test_the_exponential_is_the_sum_of_powers(V: np.ndarray) -> None:
    assert_close(exp_se3(V), in_fifty_digits(hat(V), 0))
    assert_close(exp_so3(V[:3]), in_fifty_digits(skew(V[:3]), 0))
    assert_close(exp_se3(V), expm(hat(V)), 20)  # whose own error is larger


@pytest.mark.parametrize("V", twists([*ANGLES, *ABOVE]))
def test_the_left_jacobian_is_the_sum_of_powers_of_ad(V: np.ndarray) -> None:
    assert_close(left_jacobian(V), in_fifty_digits(ad(V), 1))
    assert_close(left_jacobian(V[:3]), in_fifty_digits(skew(V[:3]), 1))
    assert_close(right_jacobian(-V), left_jacobian(V))


@pytest.mark.parametrize("V", twists([*ANGLES, *ABOVE]))
def test_inverse_jacobians_are_inverses_in_fifty_digits(V: np.ndarray) -> None:
    angle = float(np.linalg.norm(V[:3]))
    ulps = 4 * max(1.0, angle / (2 * np.pi - angle))  # a full turn is a pole, near which rounding of the angle grows
    assert_close(inverse_left_jacobian(V), in_fifty_digits(ad(V), 1, -1), ulps)
    assert_close(inverse_left_jacobian(V[:3]), in_fifty_digits(skew(V[:3]), 1, -1), ulps)
    assert_close(inverse_right_jacobian(-V), inverse_left_jacobian(V))


@pytest.mark.parametrize("V", twists(ANGLES[:-1]))
def test_the_logarithm_of_an_exponential_is_the_twist(V: np.ndarray) -> None:
    assert_close(log_se3(in_fifty_digits(hat(V), 0)), V, 16)
    assert_close(log_so3(in_fifty_digits(skew(V[:3]), 0)), V[:3], 8)


def test_tiny_rotations_keep_all_digits() -> None:
    w = 1e-150 * np.array([1.0, -2.0, 3.0])
    R = np.eye(3) + skew(w)
    np.testing.assert_allclose(log_so3(R), w, rtol=1e-15)
    np.testing.assert_allclose(log_so3(np.eye(3)), 0.0, atol=0)
    np.testing.assert_array_equal(log_se3(make_pose(p=[1, 2, 3])), [0, 0, 0, 1, 2, 3])


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, -0.8, 0), (2 / 3, 1 / 3, -2 / 3)])
def test_half_turns_have_logarithms(axis: tuple[float, float, float]) -> None:
    half = 2 * np.outer(axis, axis) - np.eye(3)
    w = log_so3(half)
    assert_close(np.abs(w @ axis), np.array(np.pi))
    assert_close(exp_so3(w), half)


@pytest.mark.parametrize("V", twists([0.0, 1e-5, 0.7, 2.5, np.pi - 1e-3]))
def test_jacobians_are_the_derivatives_of_exponential_and_logarithm(V: np.ndarray) -> None:
    d = np.array([0.3, -0.5, 0.2, 0.7, 0.1, -0.4])
    with mpmath.workdps(50):  # a step of 1e-20 leaves 30 digits of the change
        h = mpmath.mpf(10) ** -20

        def exponential(step: mpmath.mpf) -> mpmath.matrix:
            x = mpmath.matrix(hat(V).tolist()) + step * mpmath.matrix(hat(d).tolist())
            return mpmath.expm(x)

        change = (exponential(h) - exponential(-h)) / (2 * h) * mpmath.inverse(exponential(mpmath.mpf(0)))
        rate = np.array(change.tolist(), dtype=float)  # of exp(V), as a twist in the axes of the base
    left = left_jacobian(V) @ d
    assert_close(hat(left), rate, 16)
    assert_close(adjoint(exp_se3(V)) @ right_jacobian(V) @ d, left, 16)
    step = 1e-5
    moved = [log_se3(exp_se3(s * step * d) @ exp_se3(V)) for s in (1, -1)]
    np.testing.assert_allclose((moved[0] - moved[1]) / (2 * step), inverse_left_jacobian(V) @ d, rtol=0, atol=1e-8)


FUNCTIONS: list[tuple[Callable, int]] = [
    (exp_so3, 3),
    (exp_se3, 6),
    *((each, size) for each in (left_jacobian, right_jacobian, inverse_left_jacobian) for size in (3, 6)),
    (inverse_right_jacobian, 6),
    (skew, 3),
    (ad, 6),
]


@pytest.mark.parametrize(("function", "size"), FUNCTIONS)
def test_batches_and_symbols_give_the_same_numbers(function: Callable, size: int) -> None:
    values = twists([*ANGLES, *ABOVE])[:, :size]
    single = np.array([function(each) for each in values])
    np.testing.assert_allclose(function(values.reshape(2, -1, size)).reshape(single.shape), single, rtol=0, atol=1e-15)
    x = ca.SX.sym("x", size)
    traced = ca.Function("f", [x], [function(x)])
    for value, expected in zip(values, single, strict=True):
        assert_close(traced(value).full(), expected)


def test_logarithms_and_poses_of_batches_and_symbols() -> None:
    V = twists(ANGLES[:-1])
    T = exp_se3(V)
    symbol = ca.SX.sym("T", 4, 4)
    for function in (log_se3, adjoint, inverse_pose):
        many = function(T)
        assert many.shape == (len(V), *function(T[0]).shape)
        traced = ca.Function("f", [symbol], [function(symbol)])
        for one, found in zip(T, many, strict=True):
            assert_close(function(one), found)
            assert_close(traced(one).full().reshape(found.shape), found)
    assert_close(inverse_pose(T) @ T, np.broadcast_to(np.eye(4), T.shape), 8)
    assert make_pose(np.eye(3), np.zeros((2, 5, 3))).shape == (2, 5, 4, 4)
    assert log_se3(np.zeros((0, 4, 4))).shape == (0, 6)


def test_quaternions_of_batches_and_symbols() -> None:
    V = twists(ANGLES)
    R = exp_so3(V[:, :3])
    q, one = to_quaternion(R), ca.SX.sym("R", 3, 3)
    np.testing.assert_allclose(from_quaternion(q), R, rtol=0, atol=1e-15)
    np.testing.assert_allclose(q * np.sign(q[:, 3:] + 1e-300), quaternion_exp(V[:, :3]), rtol=0, atol=1e-15)
    np.testing.assert_allclose(from_quaternion(quaternion_product(q, q[::-1])), R @ R[::-1], rtol=0, atol=2e-15)
    traced = ca.Function("f", [one], [to_quaternion(one)])
    for rotation, quaternion in zip(R, q, strict=True):
        np.testing.assert_array_equal(to_quaternion(rotation), quaternion)
        np.testing.assert_allclose(traced(rotation).full()[:, 0], quaternion, rtol=0, atol=3e-16)


@pytest.mark.parametrize("angle", [0.0, 1e-8, 0.5, 1.0, 2.0, np.pi - 1e-6])
def test_derivatives_of_traced_functions_are_the_jacobians(angle: float) -> None:
    """Derivatives through the changes between series and closed forms are finite and right."""
    V, x, d = twists([angle])[0], ca.SX.sym("x", 6), ca.SX.sym("d", 6)
    logarithm = log_se3(exp_se3(x))
    np.testing.assert_allclose(ca.Function("f", [x], [ca.jacobian(logarithm, x)])(V).full(), np.eye(6), atol=1e-9)
    moved = log_se3(exp_se3(d) @ ca.SX(exp_se3(V)))
    found = ca.Function("f", [d], [ca.jacobian(moved, d)])(np.zeros(6)).full()
    np.testing.assert_allclose(found, inverse_left_jacobian(V), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exp_so3([1.0, 2.0]), "w"),
        (lambda: exp_se3(np.zeros(3)), "V"),
        (lambda: left_jacobian(np.zeros(4)), "x"),
        (lambda: left_jacobian(ca.SX.sym("x", 4)), "x"),
        (lambda: exp_so3("abc"), "w"),
        (lambda: log_so3(np.eye(4)), "R"),
        (lambda: log_so3(2 * np.eye(3)), "R"),
        (lambda: log_so3(-np.eye(3)), "R"),
        (lambda: log_so3(np.full((3, 3), np.nan)), "R"),
        (lambda: log_se3(np.ones((4, 4))), "T"),
        (lambda: log_se3(np.diag([1.0, 1, 1, 2])), "T"),
        (lambda: log_se3(np.diag([1.0, 1, 1, np.nan])), "T"),
        (lambda: log_se3(ca.SX.sym("T", 3, 3)), "T"),
    ],
)
def test_wrong_input_is_an_error_in_words(call: Callable[[], object], message: str) -> None:
    with refused(message):
        call()


def test_the_names_are_public() -> None:
    names = {"exp_so3", "log_so3", "exp_se3", "log_se3", "left_jacobian", "right_jacobian"}
    assert names | {"inverse_left_jacobian", "inverse_right_jacobian"} <= set(spatial.__all__)
