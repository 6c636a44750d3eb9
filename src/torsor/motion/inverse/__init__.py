"""Inverse optimal control: objective weights with which a motion problem predicts measured motions.

Modules from the top: ``fitting`` (the search for weights), ``weight_fit`` (its result), ``weighted_optima`` (a program
whose weights are inputs, its optima and their sensitivities), and ``measured`` (data and residuals).
"""

from torsor.motion.encoding import encodable
from torsor.motion.inverse import measured
from torsor.motion.inverse.fitting import fit_weights
from torsor.motion.inverse.measured import Measured
from torsor.motion.inverse.weight_fit import WeightFit
from torsor.motion.inverse.weighted_optima import WeightSensitivities, weight_sensitivities

__all__ = ["Measured", "WeightFit", "WeightSensitivities", "fit_weights", "weight_sensitivities"]

encodable("inverse", measured)
