"""The seat in pictures from the side."""

from typing import Any

from torsor.human.contact.support import Sitting

SEAT = 0.4  # depth of a seat (m)


def draw_seat(axes: Any, seat: Sitting, shift: float) -> None:
    """Draw the seat into a panel, seen from the right, with its middle where it acts, moved aside by a shift (m)."""
    front, back = shift - seat.back + SEAT / 2, shift - seat.back - SEAT / 2
    axes.fill([back, front, front, back], [seat.height] * 2 + [seat.height - 0.05] * 2, color="0.75", zorder=0)
    axes.plot([back + 0.03] * 2, [0.0, seat.height - 0.05], color="0.75", linewidth=2.0, zorder=0)
