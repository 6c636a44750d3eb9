"""Decimal numbers in text, in other units without a rounding error."""

from decimal import Decimal, InvalidOperation

from torsor.base.checks import LARGEST


def number_in(text: str, power: int = 0) -> float:
    """Return a number times 10**power, rounded once: "652.63" mm is the float64 nearest to 0.65263 m."""
    try:
        # float() also reads "1_000" and digits of other scripts, which no other program does.
        if "_" in text or not text.isascii():
            raise ValueError
        if not power:
            return float(text)
        try:
            return float(f"{text}e{power}")
        except ValueError:
            return float(Decimal(text).scaleb(power))
    except (ValueError, InvalidOperation):
        raise ValueError(f"{text[:40]!r} is no number") from None


def up_to(most: float) -> str:
    """Return the words of a message for the largest number that is allowed; none if it is out of the ordinary."""
    return f" up to {most:g}" if most <= LARGEST else ""
