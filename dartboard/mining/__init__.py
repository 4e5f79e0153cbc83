"""From benchmarks to verified retrieval data: cases → context pools → judged pairs → minimal kernels.

The parts, in the order of a run:

==================================  =======================================================================
``registry``, ``cases``             benchmarks, read into cases
``corpora``                         where contexts come from
``context_pool``, ``candidates``    each case with contexts that nobody has labelled
``judges``                          who says whether contexts answer a question
``controls``, ``agreement``         how often a judge is wrong
``kernels``, ``import_mining``      which contexts a question needs together
``pipeline``                        all of it: :func:`~dartboard.mining.pipeline.mine`
``dataset_writer``, ``validation``  what comes of it; its schema is :mod:`dartboard.datasets.mined`
==================================  =======================================================================
"""
