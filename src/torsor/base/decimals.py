"""Decimal numbers in text, and their conversion between units with a single rounding."""

from decimal import Decimal, InvalidOperation

from torsor.base.checks import MAX_NUMBER


def number_in(text: str, power: int = 0) -> float:
    """Return the number in a text times 10**power, rounded once: "652.63" mm is the float64 nearest to 0.65263 m."""
    try:
        # float() also accepts "1_000" and digits of other scripts, which other programs do not accept.
        if "_" in text or not text.isascii():
            raise ValueError
        if not power:
            return float(text)
        try:
            return float(f"{text}e{power}")
        except ValueError:
            return float(Decimal(text).scaleb(power))
    except (ValueError, InvalidOperation):
        raise ValueError(f"{text[:40]!r} is not a number") from None


def text_of(value: float, power: int = 0) -> str:
    """Return the shortest text for which ``number_in(text, -power)`` returns the same number; "NaN" for NaN.

    Example:
        >>> text_of(0.65263, 3), text_of(0.1), text_of(float("nan"))
        ('652.63', '0.1', 'NaN')
    """
    if value != value:
        return "NaN"
    shortest = repr(value + 0.0).removesuffix(".0")
    if not power:
        return shortest
    if "e" in shortest or power < 0:
        moved = format(Decimal(shortest).scaleb(power), "f")
        return (moved.rstrip("0").rstrip(".") if "." in moved else moved) or "0"
    sign, digits = ("-", shortest[1:]) if shortest[0] == "-" else ("", shortest)
    whole, _, part = digits.partition(".")
    before, after = (whole + part[:power].ljust(power, "0")).lstrip("0"), part[power:]
    return f"{sign}{before or '0'}.{after}" if after else f"{sign}{before}" if before else "0"


def up_to(most: float) -> str:
    """Return the text " up to {most}" for a message, or "" for very large bounds."""
    return f" up to {most:g}" if most <= MAX_NUMBER else ""
