"""Robot methods as functions that JAX and PyTorch can differentiate."""

from torsor.robot.autodiff.to_jax import to_jax
from torsor.robot.autodiff.to_torch import to_torch

__all__ = ["to_jax", "to_torch"]
