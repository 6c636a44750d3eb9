"""Identification: the parameters of a robot from measured motions and forces, and motions that excite them."""

from torsor.identification.differentiation import differentiate
from torsor.identification.drives import Drives
from torsor.identification.elasticity import Elasticity, identify_elasticity
from torsor.identification.excite import excite
from torsor.identification.fourier import Excitation
from torsor.identification.gravity import Gravity, identify_gravity
from torsor.identification.identify import identify
from torsor.identification.masses import Masses, identify_masses
from torsor.identification.measurements import Measurements
from torsor.identification.output_error import output_error
from torsor.identification.payload import Payload, identify_payload
from torsor.identification.result import Identified

__all__ = [
    "Drives",
    "Elasticity",
    "Excitation",
    "Gravity",
    "Identified",
    "Masses",
    "Measurements",
    "Payload",
    "differentiate",
    "excite",
    "identify",
    "identify_elasticity",
    "identify_gravity",
    "identify_masses",
    "identify_payload",
    "output_error",
]
