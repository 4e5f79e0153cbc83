"""Count what one warm search passes through: functions, calls, files and depth, inside the package only.

Comprehensions and lambdas belong to the function that they stand in.

python tools/call_path.py            # the default: hybrid retrieval over the demo's passages
python tools/call_path.py --list     # also each function, in the order in which it is first called
"""

import argparse
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import dartboard
from dartboard.datasets import demo
from dartboard.engine import Engine

PACKAGE = str(Path(dartboard.__file__).parent)


class Counter:
    """A profile function: which code objects of the package run, how often, and how deep."""

    def __init__(self) -> None:
        self.calls: dict[CodeType, int] = {}
        self.depth = self.deepest = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Called by the interpreter for each call and return."""
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or code.co_name.startswith("<"):
            return
        if event == "call":
            self.calls[code] = self.calls.get(code, 0) + 1
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)
        elif event == "return":
            self.depth -= 1


def profiled(engine: Engine, query: str) -> Counter:
    """One search, counted, after two that load and cache what is needed."""
    for _ in range(2):
        engine.search(query)
    counter = Counter()
    sys.setprofile(counter)
    try:
        engine.search(query)
    finally:
        sys.setprofile(None)
    return counter


def demo_engine() -> Engine:
    """An embedded store in a temporary folder with the passages of the demo."""
    import tempfile

    from dartboard.stores import Record
    from dartboard.stores.records import with_fingerprints

    engine = Engine.open(f"{tempfile.mkdtemp()}/demo.dartboard")
    vectors = engine.model.encode_documents(demo.texts())
    records = [Record(c.id, c.text, c.embedding, c.metadata) for c in demo.chunks(vectors)]
    engine.create().upsert(with_fingerprints(engine.retriever.index(records)))
    return engine


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--list", action="store_true", help="also name each function")
    parser.add_argument("--query", default="how do I retry a failed request?")
    options = parser.parse_args()
    with demo_engine() as engine:
        counter = profiled(engine, options.query)
    files = {code.co_filename for code in counter.calls}
    print(
        f"functions {len(counter.calls)}, calls {sum(counter.calls.values())}, files {len(files)}, "
        f"depth {counter.deepest}"
    )
    if options.list:
        for code, count in counter.calls.items():
            place = Path(code.co_filename).relative_to(PACKAGE)
            print(f"{count:5d}  {place}:{code.co_firstlineno}  {code.co_qualname}")


if __name__ == "__main__":
    main()
