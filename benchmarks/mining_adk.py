"""The example on google-adk, mined anew: what came of it, how far to trust it, and the σ that it gives.

Needs the package's sources: ``pip install --no-deps google-adk==1.20.0``. The result replaces
``examples/adk/mined``.
"""

import io
import json
import shutil
import tempfile
import time
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from dartboard.calibration import Calibration
from dartboard.cli.app import main
from dartboard.datasets import load_mined
from dartboard.mining.kernels.comparison import compare_sources

EXAMPLE = Path(__file__).parent.parent / "examples" / "adk"
OPTIONS = (
    *("--corpus", "package:google.adk", "--judge", "answers", "--checks", "--second-judge", "answers"),
    *("--random", "3", "--hard", "4", "--neighbours", "3", "--no-exports"),
)
FILES = ("raw.jsonl", "journal.jsonl", "retrieval_dataset.yaml")


def measure_adk() -> dict[str, Any]:
    """Mine the example into its folder and say what is in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = time.perf_counter()
        facts = json.loads(_told(["mine", "run", str(EXAMPLE), *OPTIONS, "--out", name, "--json"]))
        seconds = time.perf_counter() - started
        for file in FILES:
            shutil.copyfile(folder / file, EXAMPLE / "mined" / file)
        data_set = EXAMPLE / "mined" / "retrieval_dataset.yaml"
        _told(["calibrate", "--dataset", str(data_set), "--out", str(folder / "calibration.json")])
        calibration = Calibration.load(folder / "calibration.json")
    del facts["file"]
    del facts["controls"]["errors"]
    data = load_mined(data_set)
    return {
        **facts,
        "kernel sizes": dict(sorted(Counter(len(one) for one in data.kernels.values()).items())),
        "compared": compare_sources(data_set)["sources"],
        "sigma": {key: getattr(calibration.sigma, key) for key in ("value", "low", "high", "pairs")},
        "calibration": {"kind": calibration.kind, "k": calibration.k, "held out": calibration.held_out},
        "seconds": round(seconds, 1),
    }


def _told(command: list[str]) -> str:
    """What a command prints; one that fails ends the benchmark."""
    with redirect_stdout(io.StringIO()) as told:
        code = main(command)
    if code:
        raise SystemExit(f"dartboard {' '.join(command)} failed with {code}")
    return told.getvalue()
