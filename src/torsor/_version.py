"""The version of Torsor."""

__version__ = "0.1.0"
