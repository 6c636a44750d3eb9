"""Coefficients of the elementary functions, read from ``coefficients.toml``, by name and floating-point type."""

from typing import Any

from torsor.base.files import data_of

COEFFICIENTS: dict[str, Any] = data_of(__name__)
