"""From benchmarks to verified retrieval data: cases → context pools → judged pairs → minimal kernels.

The parts, in the order of the journey: :mod:`~dartboard.mining.cases` and their registry, a corpus of
:mod:`~dartboard.mining.documents`, pools of contexts that nobody has labelled yet, judges with their
:mod:`~dartboard.mining.verdicts`, controls that judge the judges, kernels, and the data set.
"""
