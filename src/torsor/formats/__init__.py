"""Readers and writers of descriptions. Conventions end here: each of them gives the same kind of mechanism."""

from torsor.formats.dh import DHLink, MDHLink, read_dh, read_mdh
from torsor.formats.files import read
from torsor.formats.mjcf_writing import write_mjcf
from torsor.formats.saving import write
from torsor.formats.screws import read_screws
from torsor.formats.toml import read_toml, write_toml
from torsor.formats.urdf import read_urdf
from torsor.formats.urdf_writing import write_urdf

__all__ = [
    "DHLink",
    "MDHLink",
    "read",
    "read_dh",
    "read_mdh",
    "read_screws",
    "read_toml",
    "read_urdf",
    "write",
    "write_mjcf",
    "write_toml",
    "write_urdf",
]
