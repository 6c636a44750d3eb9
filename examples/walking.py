"""Predict one walking step of least effort with 55 degrees of freedom (Barman 2020, chapter V).

The program prints tables of the stride, compared with measured people, and draws its curves. In the same folder it
writes three views of the body (human.png) and an animation (.gif):

    python examples/walking.py walking.png
"""

import sys
from pathlib import Path

import torsor
from torsor.human import Stride, animate, draw, walking


def main(path: Path) -> None:
    """Print the tables and draw the pictures."""
    result = walking().solve(progress=True)
    stride = Stride(result)
    print(result)
    print(stride.report())
    stride.plot(path)
    draw(torsor.library.human(), path=path.with_name("human.png"))
    animate(result, path.with_suffix(".gif"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "walking.png"))
