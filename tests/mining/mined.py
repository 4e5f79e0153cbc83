"""A small mined data set with everything in it, to be written, read and broken."""

from dartboard.mining.dataset import JudgedContext, Kernel, Mined, Pair, split_by_verdict

RATE = {"rate": 0.0, "low": 0.0, "high": 0.08, "errors": 0, "decided": 44, "unsure": 0, "cases": 44}
_NONE = {"rate": None, "low": 0.0, "high": 1.0, "errors": 0, "decided": 0, "unsure": 0, "cases": 0}
CONTROLS = {
    "false_positive": RATE,
    "false_negative": RATE,
    "by_kind": {"positive": RATE, "negative": RATE, "stuffed": _NONE, "injected": _NONE},
}
AGENT = 'class Agent:\n    """An agent."""\n\n    name: str\n'
TOOL = "class Tool: takes a function"


def context(fqn, text, verdict="NO", **more):
    return JudgedContext(fqn=fqn, text=text, verdict=verdict, judge="answers", **more)


def pair(id_="fix_errors:01", query="How do I give an agent a tool?", **more):
    positives, negatives, unsure = split_by_verdict(
        [
            context("toy.Tool", TOOL, part_of_kernel=True, origins=("lexical",)),
            context("toy.Agent", AGENT, part_of_kernel=True, origins=("target", "dense")),
            context("toy.both", "Agent(tools=[Tool(f)])", "YES", evidence="tools=[Tool(f)]"),
            context("toy.Retry", "class Retry: ...", reason="not found: 'tools'"),
            context("toy.Odd", "who knows", "UNSURE"),
        ]
    )
    kernel = Kernel(
        contexts=("toy.Agent", "toy.Tool"),
        status="minimal",
        alternatives=(("toy.both",),),
        judge="answers",
        evidence="class Agent … takes a function",
        calls=7,
    )
    given = {
        "positives": positives,
        "negatives": negatives,
        "unsure": unsure,
        "kernels": {"expansion": kernel},
        "source": "expansion",
        "answers": ("tools=",),
    }
    return Pair(id=id_, query=query, **{**given, **more})


def mined(*pairs, **more):
    given = {
        "corpus": "toy 1.0",
        "fingerprint": "0123",
        "judge": "answers",
        "controls": {"cases": max(1, len(pairs)), **CONTROLS},
        "settings": {"pools": {"seed": 0}, "votes": None},
    }
    return Mined(pairs=pairs or (pair(),), **{**given, **more})
