"""The command line ``torsor``: each command is one file, listed in ``main``."""

from torsor.cli.main import main

__all__ = ["main"]
