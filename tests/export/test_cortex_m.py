"""The exported C runs on an emulated Cortex-M4F: float32 numbers, no allocation, and time for 10 kHz at 168 MHz."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "cortex_m.py"
TOOLS = ("arm-none-eabi-gcc", "qemu-system-arm")


@pytest.mark.slow
@pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"{' or '.join(TOOLS)} is not installed")
def test_gravity_and_inverse_dynamics_of_a_six_axis_arm_take_less_than_a_tenth_of_a_millisecond() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr  # wrong numbers, doubles and static memory end the script
    taken = re.search(r"take (\d+) of 16800 cycles", done.stdout)
    assert taken and int(taken[1]) < 16_800
