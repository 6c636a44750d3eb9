"""Readers and writers of robot descriptions. Each reader converts the conventions of its format to a ``Mechanism``.

| module | purpose |
|---|---|
| ``dispatch`` | ``read`` and ``write``, which choose the reader or writer of a file; xacro; robots by name |
| ``toml/``, ``urdf/``, ``sdf/``, ``mjcf/``, ``usd/`` | one format each: ``reading``, ``writing`` and helpers |
| ``osim/`` | OpenSim, read only: ``file`` (elements), ``model``, ``reading`` |
| ``pinocchio`` | ``pinocchio.Model`` objects |
| ``meshes/`` | mesh files, and triangles of simple shapes |
| ``search_path`` | resolution of ``package://`` and ``model://`` |
| ``conventions`` | coordinates of other programs |
| ``dh``, ``screws`` | Denavit-Hartenberg tables and screw axes, given in Python |
| ``xml`` | safe XML parsing; XML elements with numbers |
| ``writing``, ``joint_decomposition`` | helpers of writers: files, mesh copies, decomposition of joints |

To add a format ``abc``:

1. Reader. Write ``abc/reading.py`` with ``read_abc(path, base="fixed", strict=False) -> Mechanism``. Create ``Link``,
   ``Joint``, ``Frame`` and ``Loop`` objects in SI units and radians, and end with ``mechanism.build``, which validates
   the tree, sorts the joints and merges fixed ones. Parse XML only with ``xml.parse_xml``, which rejects entities.
2. Errors. Raise ``ModelError`` with the file and line or element (``where``), what is wrong, what is allowed and the
   fix. Pass ``source=`` to the parts, so that their own errors also name the file. Use ``errors.warn`` for properties
   in the file that a mechanism cannot represent. Limit the size of the file, and never evaluate text from it.
3. Writer. Write ``abc/writing.py`` with ``write_abc(mechanism, path)``. Write the file with ``writing.write_file``,
   convert joint types with ``joint_decomposition.decomposed_joints``, and collect forces and limits that the format
   cannot express in ``writing.Omissions``, which issues one warning. Raise ``ModelError`` for a structure that the
   format does not support, such as a loop in URDF.
4. Dispatch. Add the suffix, or the root element, to the tables in ``dispatch``, and export the functions below.
5. Tests. Add invalid and malicious files and round trips to ``tests/formats``. Compare with the reference program of
   the format if it can be installed.
6. Documentation. Add a page or section to ``docs``, and extend the docstring of ``torsor.load`` and the changelog.
"""

from typing import TYPE_CHECKING, Any

from torsor.formats.conventions import Convention
from torsor.formats.dh import DHLink, MDHLink, read_dh, read_mdh
from torsor.formats.dispatch import named, read, write
from torsor.formats.screws import read_screws

if TYPE_CHECKING:
    from torsor.formats.mjcf.reading import read_mjcf
    from torsor.formats.mjcf.writing import write_mjcf
    from torsor.formats.osim.reading import read_skeleton
    from torsor.formats.sdf.reading import read_sdf
    from torsor.formats.sdf.writing import write_sdf
    from torsor.formats.toml.reading import read_toml
    from torsor.formats.toml.writing import write_toml
    from torsor.formats.urdf.reading import read_urdf
    from torsor.formats.urdf.writing import write_urdf
    from torsor.formats.usd.reading import read_usd
    from torsor.formats.usd.writing import write_usd

__all__ = [
    "Convention",
    "DHLink",
    "MDHLink",
    "read",
    "read_dh",
    "read_mdh",
    "read_mjcf",
    "read_screws",
    "read_sdf",
    "read_skeleton",
    "read_toml",
    "read_urdf",
    "read_usd",
    "write",
    "write_mjcf",
    "write_sdf",
    "write_toml",
    "write_urdf",
    "write_usd",
]


def __getattr__(name: str) -> Any:
    if name in __all__:  # readers and writers whose modules are imported on first use
        value = globals()[name] = named(name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
