"""Inverse optimal control: identification of the objective weights with which a problem predicts measured motions.

From top to bottom, the modules are ``fitting`` (search for weights), ``weight_fit`` (its result), ``weighted_optima``
(program with weights as inputs, its optima and their sensitivities) and ``measured`` (data and residuals).
"""

from torsor.motion.encoding import encodable
from torsor.motion.inverse import measured
from torsor.motion.inverse.fitting import fit_weights
from torsor.motion.inverse.measured import Measured
from torsor.motion.inverse.weight_fit import WeightFit
from torsor.motion.inverse.weighted_optima import WeightSensitivities, weight_sensitivities

__all__ = ["Measured", "WeightFit", "WeightSensitivities", "fit_weights", "weight_sensitivities"]

encodable("inverse", measured)
