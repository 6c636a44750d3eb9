"""``python -m torsor`` is the command ``torsor``."""

import sys

from torsor.cli import main

sys.exit(main())
