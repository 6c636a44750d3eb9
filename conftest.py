"""Tests keep the kernels that they compile to themselves, not in the user's cache."""

import os
from pathlib import Path

os.environ.setdefault("TORSOR_CACHE", str(Path(__file__).parent / ".pytest_cache" / "kernels"))
