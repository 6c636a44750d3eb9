"""Flexible links: beams by assumed modes, and rods by strain modes (docs/flexible.md)."""

from torsor.flexible.beams import beam
from torsor.flexible.edit import with_beam, with_flexible_link
from torsor.flexible.files import read_modes, write_modes
from torsor.flexible.nodes import node_modes
from torsor.flexible.rods import with_rod
from torsor.mechanism.flexible import Modes

__all__ = [
    "Modes",
    "beam",
    "node_modes",
    "read_modes",
    "with_beam",
    "with_flexible_link",
    "with_rod",
    "write_modes",
]
