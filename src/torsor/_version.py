"""The version of Torsor."""

__version__ = "0.2.0"
