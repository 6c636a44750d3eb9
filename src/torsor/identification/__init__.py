"""Identification: the parameters of a robot from measured motions and forces, and motions that excite them."""

from torsor.identification.differentiation import differentiate
from torsor.identification.excite import excite
from torsor.identification.fourier import Excitation
from torsor.identification.identify import identify
from torsor.identification.measurements import Measurements
from torsor.identification.output_error import output_error
from torsor.identification.result import Identified

__all__ = ["Excitation", "Identified", "Measurements", "differentiate", "excite", "identify", "output_error"]
