"""The command line ``torsor``: each command is one file, listed in ``commands``."""

from torsor.cli.main import main

__all__ = ["main"]
