"""Mining where the truth is known: kernels with a judge that knows, the offline judge on labelled passages.

    python benchmarks/mining.py             # everything, some minutes; vectors are cached
    python benchmarks/mining.py --only b    # one part: a (kernels), b (answers), c (what strings cannot see),
                                            # d (an endpoint that fails), e (the example on google-adk)

Reads ``hotpotqa_dev200``, ``musique_train100``, ``rgb_en_int`` and ``rgb_en_fact`` from ``$DARTBOARD_DATA``
(default ``../shared/data``) for a, b and c, and writes ``benchmarks/results/mining.json`` and
``docs/benchmarks/mining.md``. Part e needs google-adk 1.20.0 and mines ``examples/adk`` anew.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # run as a script, this file finds its neighbours

from benchmarks.measuring import data_folder  # noqa: E402
from benchmarks.mining_adk import measure_adk  # noqa: E402
from benchmarks.mining_answers import measure_answers, measure_blindness  # noqa: E402
from benchmarks.mining_faults import measure_faults  # noqa: E402
from benchmarks.mining_kernels import measure_kernels  # noqa: E402
from benchmarks.mining_tables import PAGE, RESULTS, fresh_page  # noqa: E402

MULTI_HOP = {"HotpotQA": "hotpotqa_dev200", "MuSiQue": "musique_train100"}
RGB = {"RGB, two facets": "rgb_en_int", "RGB, one fact": "rgb_en_fact"}


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--only", choices=["a", "b", "c", "d", "e"], help="one part; the others are kept")
    only = parser.parse_args().only
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    parts: dict[str, Callable[[], Any]] = {
        "a": lambda: {name: measure_kernels(found(folder)) for name, folder in MULTI_HOP.items()},
        "b": lambda: {name: measure_answers(found(folder)) for name, folder in RGB.items()},
        "c": lambda: {name: measure_blindness(found(folder)) for name, folder in MULTI_HOP.items()},
        "d": measure_faults,
        "e": measure_adk,
    }
    for part, measure in parts.items():
        if only in (None, part):
            known[part] = measure()
            RESULTS.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(fresh_page(), encoding="utf-8")


def found(folder: str) -> Path:
    """The folder of a data set; a missing one ends the run with advice."""
    return data_folder(folder) / folder


if __name__ == "__main__":
    main()
