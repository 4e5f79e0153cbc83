"""What one warm search passes: Python functions, their files, the depth of calls, and how many calls.

    python tools/call_path.py INDEX QUESTION [--k 5]

The query's vector is given, so the encoder does not count. Functions are those of dartboard; calls are all.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dartboard.engine import Engine  # noqa: E402

HOME = str(ROOT / "dartboard") + "/"


def main() -> None:
    """Print what the search passes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("index", help="a store's URL")
    parser.add_argument("question")
    parser.add_argument("--k", type=int, default=5)
    options = parser.parse_args()
    with Engine.open(options.index, read_only=True) as engine:
        vector = engine.model.encode_query(options.question)
        for _ in range(3):
            engine.search(options.question, k=options.k, query_vector=vector)
        path = CallPath()
        sys.setprofile(path)
        try:
            engine.search(options.question, k=options.k, query_vector=vector)
        finally:
            sys.setprofile(None)
    print(path.told())


class CallPath:
    """Counts the calls that it is told of as a profiler."""

    def __init__(self) -> None:
        self.functions: set[CodeType] = set()
        self.calls: Counter[str] = Counter()
        self.depth = self.deepest = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """As :func:`sys.setprofile` calls it."""
        if event in ("call", "c_call"):
            self.calls[event] += 1
        if not frame.f_code.co_filename.startswith(HOME):
            return
        if event == "call":
            self.functions.add(frame.f_code)
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)
        elif event == "return":
            self.depth -= 1

    def told(self) -> str:
        """The counts in two lines."""
        by_file = Counter(code.co_filename.removeprefix(HOME) for code in self.functions)
        by_room = Counter(code.co_filename.removeprefix(HOME).partition("/")[0] for code in self.functions)
        rooms = ", ".join(f"{room} {count}" for room, count in by_room.most_common())
        return (
            f"{len(self.functions)} functions in {len(by_file)} files, {self.deepest} deep; "
            f"{self.calls['call']} Python calls, {self.calls['c_call']} C calls\n{rooms}"
        )


if __name__ == "__main__":
    main()
