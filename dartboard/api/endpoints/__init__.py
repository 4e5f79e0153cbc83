"""One file an endpoint group: its schemas, its routes, and the work behind them.

The schemas of ``/retrieve``, which others share, and of ``/rerank`` are in ``*_schemas.py`` beside them.
"""
