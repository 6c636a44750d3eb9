"""``python -m torsor`` is the command ``torsor``."""

import sys

from torsor.cli.main import main

sys.exit(main())
