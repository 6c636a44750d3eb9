"""The seat and its armrests in pictures from the side."""

from typing import Any

from torsor.human.contact.support import Rails, Sitting

SEAT = 0.4  # depth of a seat (m)
REST = 0.25  # length of an armrest (m)


def draw_seat(axes: Any, seat: Sitting, shift: float) -> None:
    """Draw the seat into a panel, seen from the right, with its middle where it acts, moved aside by a shift (m)."""
    front, back = shift - seat.back + SEAT / 2, shift - seat.back - SEAT / 2
    axes.fill([back, front, front, back], [seat.height] * 2 + [seat.height - 0.05] * 2, color="0.75", zorder=0)
    axes.plot([back + 0.03] * 2, [0.0, seat.height - 0.05], color="0.75", linewidth=2.0, zorder=0)
    if seat.rails is not None:
        draw_rails(axes, seat.rails, shift)


def draw_rails(axes: Any, rails: Rails, shift: float) -> None:
    """Draw an armrest below the hands, seen from the right, moved aside by a shift (m)."""
    front = shift + rails.ahead + 0.05
    axes.plot([front - REST, front], [rails.height - 0.02] * 2, color="0.6", linewidth=3.0, zorder=0)
