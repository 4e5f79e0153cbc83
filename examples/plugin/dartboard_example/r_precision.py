"""A metric: R-precision, the precision of the first R picks, where R passages are relevant to the question.

R-precision = |relevant ∩ first R| / R
"""

from dartboard.evaluation import JudgedRun
from dartboard.evaluation.measures import Kind
from dartboard.evaluation.metric_formulas import share
from dartboard.types import FloatArray


def r_precision(run: JudgedRun, k: int | None) -> FloatArray:
    """One number a query; with ``k``, of the first k picks alone."""
    run = run.plain  # by chunk ids; without this line copies of one passage count once
    wanted = run.judgements.relevant_counts
    hits = run.relevant_within(k)
    early = hits[run.rank[hits] < wanted[run.query[hits]]]
    return share(run.count(early), wanted)


R_PRECISION = Kind(r_precision, "R-precision")
"""What the entry point names: the function, and what reports call it."""
