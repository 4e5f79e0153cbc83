"""Batch work on many machines through Ray: texts are encoded there, one process here keeps what arrives.

Only plain values travel: the names of functions and models, texts, numbers and arrays. What a worker needs
beyond that it loads itself, and says what it has loaded before anything is kept. Needs the extra ``ray``.
"""

from dartboard.cluster.address import OFF, Address, parse_address
from dartboard.cluster.connecting import connect
from dartboard.cluster.encoder import ClusterEncoder
from dartboard.cluster.recipe import Recipe, recipe_of
from dartboard.cluster.work import Cluster, Machine, Ticket

__all__ = [
    "OFF",
    "Address",
    "Cluster",
    "ClusterEncoder",
    "Machine",
    "Recipe",
    "Ticket",
    "connect",
    "parse_address",
    "recipe_of",
]
