"""The command ``dartboard``, also as ``python -m dartboard``.

A search takes less than a second, and the garbage collector would take a sixth more: it looks through what is
imported again and again, and once more at the end.
"""

import gc
import sys


def run() -> int:
    """Run the command line in a process of its own and return its exit code."""
    gc.disable()  # importing makes many objects and hardly any garbage
    from dartboard.cli import main

    gc.freeze()
    gc.enable()
    try:
        return main()
    finally:
        gc.freeze()  # all memory is released when the process ends


if __name__ == "__main__":
    sys.exit(run())
