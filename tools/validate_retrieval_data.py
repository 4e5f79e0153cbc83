#!/usr/bin/env python
"""Phase 2, the judge: raw candidates become a verified retrieval_dataset.yaml.

The second half of ``dartboard mine run``: the same code. For example:

    python tools/validate_retrieval_data.py raw.jsonl --corpus package:google.adk --judge gemini --out mined

Given a retrieval_dataset.yaml instead, it is ``dartboard mine validate``: it checks that file.
"""

import sys

from dartboard.cli import main


def command(arguments: list[str]) -> list[str]:
    """``judge`` for raw candidates, ``validate`` for a data set that is there."""
    is_data_set = bool(arguments) and arguments[0].endswith((".yaml", ".yml"))
    return ["mine", "validate" if is_data_set else "judge", *arguments]


if __name__ == "__main__":
    sys.exit(main(command(sys.argv[1:])))
