"""Former names of :mod:`~dartboard.evaluation.judged_run`, for existing plug-ins."""

from dartboard.evaluation.judged_run import JudgedRun as Assessed

assess = Assessed.of

__all__ = ["Assessed", "assess"]
