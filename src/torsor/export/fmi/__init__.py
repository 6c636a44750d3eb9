"""Functional mock-up units (FMI 2.0 and 3.0): the dynamics of a robot as one file for other simulation programs."""

from torsor.export.fmi.export import export_fmi

__all__ = ["export_fmi"]
