"""The command line."""

from torsor.cli.main import main

__all__ = ["main"]
