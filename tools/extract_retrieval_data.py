#!/usr/bin/env python
"""Phase 1, the extractor: questions with contexts, none of them labelled.

The first half of ``dartboard mine run``: the same code. For example:

    python tools/extract_retrieval_data.py examples/adk --corpus package:google.adk --out raw.jsonl
"""

import sys

from dartboard.cli import main

if __name__ == "__main__":
    sys.exit(main(["mine", "extract", *sys.argv[1:]]))
