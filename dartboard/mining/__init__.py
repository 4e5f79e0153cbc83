"""From benchmarks to verified retrieval data: cases → context pools → judged pairs → minimal kernels.

The parts, in the order of a run:

=======================================================  ==================================================
``benchmark_registry``, ``cases``, ``safe_paths``        benchmarks, read into cases
``corpora``                                              where contexts come from
``extractor``, ``context_pool``, ``raw_candidates``      each case with contexts that nobody has labelled
``judges``                                               who says whether contexts answer a question
``judge_runner``, ``verdict_journal``,                   many verdicts at once, none paid for twice
``journaled_judge``
``controls``, ``agreement``                              how often a judge is wrong
``kernels``, ``import_mining``                           which contexts a question needs together
``pipeline``                                             all of it: :func:`~dartboard.mining.pipeline.mine`
``dataset``, ``dataset_writer``, ``validation``          what comes of it
=======================================================  ==================================================
"""
