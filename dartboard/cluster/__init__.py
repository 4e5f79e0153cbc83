"""Batch work on many machines through Ray: texts are encoded there, one process here keeps what arrives.

Only plain values travel: the names of functions and models, texts, numbers and arrays. What a worker needs
beyond that it loads itself, and says what it has loaded before anything is kept. Needs the extra ``ray``.
"""

from dartboard.cluster.connection import OFF, Address, connect, parse_address
from dartboard.cluster.encoder import ClusterEncoder, Recipe, recipe_of
from dartboard.cluster.tasks import Cluster, Machine, Task

__all__ = [
    "OFF",
    "Address",
    "Cluster",
    "ClusterEncoder",
    "Machine",
    "Recipe",
    "Task",
    "connect",
    "parse_address",
    "recipe_of",
]
