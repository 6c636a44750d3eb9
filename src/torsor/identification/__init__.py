"""Identification: the parameters of a robot from measured motions and forces, and motions that excite them."""

from torsor.identification.differentiation import differentiate
from torsor.identification.excite import excite
from torsor.identification.fourier import Excitation
from torsor.identification.identify import identify
from torsor.identification.logs.findings import LogFinding
from torsor.identification.logs.first_look import FirstLook, first_look
from torsor.identification.logs.log_map import LogMap
from torsor.identification.measurements import Measurements
from torsor.identification.result import Identified

__all__ = [
    "Excitation",
    "FirstLook",
    "Identified",
    "LogFinding",
    "LogMap",
    "Measurements",
    "differentiate",
    "excite",
    "first_look",
    "identify",
]
