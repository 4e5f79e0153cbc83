"""Dartboard where people already are: one package a framework, each behind the extra of its name.

::

    dartboard.integrations.langchain      retrievers, a document compressor, embeddings
    dartboard.integrations.llama_index    retrievers, a node postprocessor, an embedding
    dartboard.integrations.haystack       retrievers and a ranker component
    dartboard.integrations.mcp            tools for language models

Shared by them: retrievers ask an index by ``index_search``; components that select from given documents go
through ``rerank``, which gets vectors from ``vector_source`` (ready-made, or by ``models`` and
``document_vectors``); ``options`` is what can be asked for, ``pick_metadata`` what is written beside each
pick.

Importing this package loads no framework. Importing one of the packages does, and says what to install
where it is missing.
"""
