"""``python -m dartboard`` is the command ``dartboard``."""

import sys

from dartboard.cli import main

if __name__ == "__main__":
    sys.exit(main())
