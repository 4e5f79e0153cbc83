"""Dartboard where people already are: one module a framework, each behind the extra of its name.

::

    dartboard.integrations.langchain      a retriever, a document compressor, embeddings
    dartboard.integrations.llama_index    a retriever, a node postprocessor, an embedding
    dartboard.integrations.haystack       a retriever and a ranker component

Importing this package loads no framework. Importing one of the modules does, and says what to install
where it is missing.
"""
