"""Sine, cosine and tangent of a reduced angle that is a sum of two numbers, and the reduction of usual angles."""

from torsor.compiler.llvm.vectors import (
    Number,
    Whole,
    fma,
    polynomial,
    quick_two_sum,
    quotient,
    two_product,
    two_sum,
    where,
)

Pair = tuple[Number, Number]


def reduce_angle(x: Number) -> tuple[Number, Number, Whole]:
    """Return (r, low, quarter) with x = r + low + quarter pi/2, up to the largest angle of the type."""
    s = x.emitter.scalar
    turned = fma(x, 0.6366197723675814, s.rounder)
    n = turned - s.rounder
    first, second, third = s.half_pi
    exact = fma(n, -first, x)
    product, error = two_product(n, x.like(-second))
    total, lost = two_sum(exact, product)
    return *quick_two_sum(total, lost + fma(n, -third, error)), turned.bits()


def sine_and_cosine(r: Number, low: Number) -> tuple[Pair, Pair]:
    """Return sin(r + low) and cos(r + low), |r| <= pi/4, each as a sum of two numbers."""
    s = r.emitter.scalar
    z, error = two_product(r, r)
    half = z * 0.5
    usual = 1.0 - half
    lost = (1.0 - usual) - half
    sine = quick_two_sum(r, fma(z * r, polynomial(z, s.sin_terms), low * usual))
    rest = fma(z * z, polynomial(z, s.cos_terms), lost - fma(error, 0.5, r * low))
    return sine, quick_two_sum(usual, rest)


def in_quarter(even: Number, odd: Number, quarter: Whole) -> Number:
    """Return the first number in even quarter turns, the second in odd ones, with a minus in every second pair."""
    sign = (quarter & 2) << (8 * even.emitter.scalar.size - 2)
    return (where(quarter.is_odd(), odd, even).bits() ^ sign).as_bits()


def tangent(r: Number, low: Number, quarter: Whole) -> Number:
    """Return the tangent of r + low + quarter pi/2."""
    sine, cosine = sine_and_cosine(r, low)
    odd = quarter.is_odd()
    over = [where(odd, b, a) for a, b in zip(sine, cosine, strict=True)]
    under = [where(odd, -a, b) for a, b in zip(sine, cosine, strict=True)]
    first, second = quotient(over[0], over[1], under[0], under[1])
    return first + second
