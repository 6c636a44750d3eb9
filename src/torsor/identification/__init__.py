"""Identification of robot parameters from measured motions and forces, and excitation trajectories."""

from torsor.identification.contents import Unidentified
from torsor.identification.differentiation import differentiate
from torsor.identification.drives import Drives
from torsor.identification.excitation.excite import excite
from torsor.identification.excitation.fourier import Excitation
from torsor.identification.html_report import write_identification_report
from torsor.identification.identify import identify
from torsor.identification.logs.first_look import FirstLook, first_look
from torsor.identification.logs.log import LogFinding
from torsor.identification.logs.log_map import LogMap
from torsor.identification.measurements import Measurements
from torsor.identification.output_error import output_error
from torsor.identification.result import Identified
from torsor.identification.single_quantities import (
    Elasticity,
    Gravity,
    Masses,
    Payload,
    identify_elasticity,
    identify_gravity,
    identify_masses,
    identify_payload,
)

__all__ = [
    "Drives", "Elasticity", "Excitation", "FirstLook", "Gravity", "Identified", "LogFinding", "LogMap", "Masses",
    "Measurements", "Payload", "Unidentified", "differentiate", "excite", "first_look", "identify",
    "identify_elasticity", "identify_gravity", "identify_masses", "identify_payload", "output_error",
    "write_identification_report",
]  # fmt: skip
