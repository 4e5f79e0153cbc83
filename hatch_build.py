"""Compile selection's C with whatever compiler there is, when a wheel is built or an editable one installed.

Without a compiler the package is the same but for its speed: selection then goes through NumPy.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "dartboard/selection"
LIBRARY = f"{FOLDER}/libmachine.so"
FLAGS = "-O3 -std=gnu11 -shared -fPIC -fopenmp-simd -fno-math-errno -fno-trapping-math -ffp-contract=fast"
TRIES: tuple[tuple[str, ...], ...] = ((), ("-DONE_TARGET",))
"""For several generations of processors at once, or, where a compiler cannot do that, for all of them."""


class MachineHook(BuildHookInterface):  # type: ignore[misc]
    """Adds the library to a wheel, which then is one for this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, or say that there is no compiler."""
        if not build(Path(self.root)):
            self.app.display_warning("dartboard: no C compiler works here: selection will go through NumPy")
            return
        build_data["artifacts"].append(LIBRARY)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def build(root: Path) -> bool:
    """Whether the library was compiled; one that was there before is gone in any case."""
    source, library = root / FOLDER / "machine.c", root / LIBRARY
    library.unlink(missing_ok=True)
    compiler = os.environ.get("CC") or next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None or sys.platform == "win32":
        return False
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    made = library.with_suffix(f".{os.getpid()}")
    for more in TRIES:
        names = [f'-DSOURCE="{digest}"', str(source), "-o", str(made), "-lm"]
        command = [*compiler.split(), *FLAGS.split(), *more, *names]
        try:
            done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
        except OSError:
            return False
        if done.returncode == 0:
            made.replace(library)
            return True
    made.unlink(missing_ok=True)
    return False
