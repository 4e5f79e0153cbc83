"""A small mined data set with everything in it, to be written, read and broken."""

from dartboard.datasets.mined import Controls, CorpusName, JudgedContext, JudgeName, Kernel, Mined, Pair, Rate

RATE = Rate(rate=0.0, low=0.0, high=0.08, errors=0, decided=44, unsure=0, cases=44)
NONE = Rate(rate=None, low=0.0, high=1.0, errors=0, decided=0, unsure=0, cases=0)
WRONG = Rate(rate=1.0, low=0.4, high=1.0, errors=3, decided=3, unsure=0, cases=3)
AGENT = 'class Agent:\n    """An agent."""\n\n    name: str\n'
TOOL = "class Tool: takes a function"


def controls(**more):
    rates = {"false_positive": RATE, "false_negative": RATE}
    by_kind = {"positive": RATE, "negative": RATE, "stuffed": NONE, "injected": NONE}
    return Controls(**{"judge": "answers", "seed": 0, "cases": 1, "by_kind": by_kind, **rates, **more})


def context(fqn, text, verdict="NO", **more):
    return JudgedContext(fqn=fqn, text=text, verdict=verdict, judge="answers", **more)


def pair(id_="fix_errors:01", query="How do I give an agent a tool?", **more):
    kernel = Kernel(
        contexts=("toy.Agent", "toy.Tool"),
        status="minimal",
        judge="answers",
        evidence="class Agent … takes a function",
        calls=7,
    )
    given = {
        "positive_ctxs": (
            context("toy.Agent", AGENT, part_of_kernel=True, origins=("target", "dense")),
            context("toy.Tool", TOOL, part_of_kernel=True, origins=("lexical",)),
            context("toy.both", "Agent(tools=[Tool(f)])", "YES", evidence="tools=[Tool(f)]"),
        ),
        "negative_ctxs": (context("toy.Retry", "class Retry: ...", reason="not found: 'tools'"),),
        "unsure_ctxs": (context("toy.Odd", "who knows", "UNSURE"),),
        "kernel": ("toy.Agent", "toy.Tool"),
        "kernel_status": "minimal",
        "kernel_source": "expansion",
        "alternatives": (("toy.both",),),
        "kernels": {"expansion": kernel},
        "answers": ("tools=",),
    }
    return Pair(id=id_, query=query, **{**given, **more})


def mined(*pairs, **more):
    given = {
        "format": "dartboard retrieval data set",
        "version": 2,
        "corpus": CorpusName(name="toy 1.0", fingerprint="0123"),
        "judge": JudgeName(name="answers"),
        "controls": controls(cases=max(1, len(pairs))),
        "settings": {"pools": {"seed": 0}, "votes": None},
    }
    return Mined(pairs=pairs or (pair(),), **{**given, **more})
