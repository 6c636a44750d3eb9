"""Export of C99, C++ and JavaScript source, ROS 2 packages and functional mock-up units.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     [path.name for path in torsor.export.c(torsor.library.two_link(), folder, ["mass_matrix"], name="arm")]
['arm.h', 'arm.c', 'CMakeLists.txt']
"""

from torsor.export.fmu.export import fmi
from torsor.export.ros2_package import ros2
from torsor.export.source import c, cpp, js

__all__ = ["c", "cpp", "fmi", "js", "ros2"]
