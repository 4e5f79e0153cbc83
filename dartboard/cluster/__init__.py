"""Batch work on many machines with Ray: workers encode texts, and one local process stores the results.

Only plain values are sent: names of functions and models, texts, numbers and arrays. A worker loads
everything else itself and reports its versions before any result is stored. Needs the extra ``ray``.
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
