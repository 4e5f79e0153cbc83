"""From benchmarks to verified retrieval data: cases → context pools → judged pairs → minimal kernels.

The parts, in the order of a run:

==========================================================  ===============================================
``registry``, ``cases``                                     benchmarks, read into cases
``corpora``, ``documents``                                  where contexts come from
``extractor``, ``context_pool``, ``candidates``             each case with contexts that nobody has labelled
``judges``, ``verdicts``, ``prompts``                       who says whether contexts answer a question
``controls``, ``agreement``                                 how often a judge is wrong
``calls``, ``journal``, ``journaled``                       many verdicts at once, none paid for twice
``kernels``, ``conflicts``                                  which contexts a question needs together
``pipeline``                                                all of it: :func:`~dartboard.mining.pipeline.mine`
``dataset``, ``dataset_writer``, ``validation``             what comes of it
==========================================================  ===============================================
"""
