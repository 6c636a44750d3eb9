"""Identification: the parameters of a robot from measured motions and forces, and motions that excite them."""

from torsor.identification.differentiation import differentiate
from torsor.identification.drives import Drives
from torsor.identification.elasticity import Elasticity, identify_elasticity
from torsor.identification.excitation.excite import excite
from torsor.identification.excitation.fourier import Excitation
from torsor.identification.gravity import Gravity, identify_gravity
from torsor.identification.identify import identify
from torsor.identification.logs.findings import LogFinding
from torsor.identification.logs.first_look import FirstLook, first_look
from torsor.identification.logs.log_map import LogMap
from torsor.identification.masses import Masses, identify_masses
from torsor.identification.measurements import Measurements
from torsor.identification.output_error import output_error
from torsor.identification.payload import Payload, identify_payload
from torsor.identification.result import Identified
from torsor.identification.unidentified import Unidentified

__all__ = [
    "Drives",
    "Elasticity",
    "Excitation",
    "FirstLook",
    "Gravity",
    "Identified",
    "LogFinding",
    "LogMap",
    "Masses",
    "Measurements",
    "Payload",
    "Unidentified",
    "differentiate",
    "excite",
    "first_look",
    "identify",
    "identify_elasticity",
    "identify_gravity",
    "identify_masses",
    "identify_payload",
    "output_error",
]
