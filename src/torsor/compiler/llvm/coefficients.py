"""Coefficients of the elementary functions for each type: those of ``coefficients.toml``, by name and type."""

from typing import Any

from torsor.base.files import data_of

COEFFICIENTS: dict[str, Any] = data_of(__name__)
