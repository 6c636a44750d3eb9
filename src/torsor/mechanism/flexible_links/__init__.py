"""Flexible links: beams with assumed modes, and rods with strain modes (docs/compute/flexible.md)."""

from torsor.mechanism.flexible import Modes
from torsor.mechanism.flexible_links.beams import beam
from torsor.mechanism.flexible_links.edit import with_beam, with_flexible_link, with_rod
from torsor.mechanism.flexible_links.modes import node_modes, read_modes, write_modes

__all__ = ["Modes", "beam", "node_modes", "read_modes", "with_beam", "with_flexible_link", "with_rod", "write_modes"]
