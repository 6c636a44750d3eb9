"""Old place of ``write``, which is in ``torsor.formats.dispatch`` now."""

from torsor.formats.dispatch import write

__all__ = ["write"]
