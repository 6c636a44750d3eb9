"""Old names of ``torsor.mechanism.build``."""

from torsor.mechanism.build import build, fixed_at, unused_name

__all__ = ["assemble", "free_name", "held"]

assemble, free_name, held = build, unused_name, fixed_at
