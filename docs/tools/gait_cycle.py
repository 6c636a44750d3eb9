"""Draw docs/people/gait_cycle.png: a recorded walk over the gait cycle, computed by Torsor and by OpenSim.

python docs/tools/gait_cycle.py FOLDER    # OpenSim Moco's example3DWalking, with coordinates.sto and id_walk.sto
"""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from facts import DOCS

from torsor.human import recorded_walk, recordings
from torsor.human.measured import measured_gait


def main(folder: Path) -> None:
    """Compute the right stride with OpenSim's skeleton, and draw it with OpenSim's results, which begin later."""
    markers = recordings.load(folder / "markers_walk.trc", check=False).markers
    forces = recordings.load(folder / "grf_walk.mot", check=False).forces
    model = recordings.read_osim(folder / "subject_walk_scaled.osim")
    gait = measured_gait(markers, forces, model=model, force_cutoff=math.inf)  # OpenSim filters the motion only
    own = recorded_walk(gait.dynamics, label="Torsor")
    files = [folder / name for name in ("coordinates.sto", "id_walk.sto", "grf_walk.mot")]
    other = recorded_walk(*files, mass=gait.mass, label="OpenSim")
    start, end = other.strides[0]
    first = float(recordings.load(files[1], check=False).table.times[0])
    known = np.linspace(start, end, len(other.curves["knee_flexion"].mean)) >= first
    seen = {name: curve._replace(mean=np.where(known, curve.mean, np.nan)) for name, curve in other.curves.items()}
    own.plot(DOCS / "people" / "gait_cycle.png", replace(other, curves=seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
