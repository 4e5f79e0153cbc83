"""Lists of passages, encoded on a cluster while others are read and kept here.

A list is encoded by one worker as one process here would encode it: the same call, hence the same batches in
the same padding, with the same number of threads. So the vectors are the same to the bit, on processors that
round alike.
"""

import logging
from typing import Any

from dartboard.cluster.recipe import Recipe, examine, prepared
from dartboard.cluster.work import AHEAD, Cluster, Machine, Ticket
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ClusterError

logger = logging.getLogger(__name__)


class ClusterEncoder:
    """Encodes lists of passages on machines that were examined first."""

    def __init__(self, cluster: Cluster, recipe: Recipe) -> None:
        self._cluster = cluster
        self._recipe = recipe
        self._plain = recipe.plain()
        self._heard: set[str] = set()
        self.machines = check_machines(cluster, recipe)
        self._cpus = cores_each(self.machines, recipe)
        self.slots = cluster.slots(self._cpus)

    @property
    def room(self) -> int:
        """How many lists may be under way."""
        return AHEAD * self.slots + 1

    def begin(self, texts: list[str]) -> "Encoding":
        """Let some machine encode the texts."""
        return Encoding(self, self._cluster.begin(encode, self._plain, texts, cpus=self._cpus))

    def ready(self, ticket: Ticket) -> bool:
        """Whether the vectors are there."""
        return self._cluster.ready(ticket)

    def vectors(self, ticket: Ticket) -> Vectors:
        """The vectors, once they are there."""
        name, bits, vectors = self._cluster.result(ticket)
        if bits != self._recipe.bits and name not in self._heard:
            self._heard.add(name)
            warn_of_bits([name])
        found: Vectors = vectors
        return found


class Encoding:
    """A list that is being encoded."""

    def __init__(self, encoder: ClusterEncoder, ticket: Ticket) -> None:
        self._encoder = encoder
        self._ticket = ticket

    def ready(self) -> bool:
        """Whether the vectors are there."""
        return self._encoder.ready(self._ticket)

    def vectors(self) -> Vectors:
        """``(n, d)``, in the order of the texts; waits for them."""
        return self._encoder.vectors(self._ticket)


def encode(plain: dict[str, str | int], texts: list[str]) -> tuple[str, str, Vectors]:
    """On a worker: its machine, the bits of its model, and the vectors."""
    loaded = prepared(plain)
    if loaded.model is None:
        raise ClusterError("no model was named to encode with")
    name, bits = examine(plain)
    return name, bits, loaded.model.encode_documents(texts)


def check_machines(cluster: Cluster, recipe: Recipe) -> list[Machine]:
    """Every machine that can work, found to have the same dartboard and model; one that has not is an error.

    A machine that is lost while it is asked is left out, as long as another one is there.
    """
    asked = cluster.machines()
    if not asked:
        raise ClusterError(
            f"the cluster at {cluster.address} has no machine with a core to offer: start one there with "
            "ray start --address HOST:PORT"
        )
    tickets = [
        (machine, cluster.begin(examine, recipe.plain(), cpus=0, machine=machine)) for machine in asked
    ]
    answered: list[Machine] = []
    other_bits: list[str] = []
    for machine, ticket in tickets:
        found = _answer(cluster, machine, ticket)
        if found is not None:
            answered.append(machine)
            if found[1] != recipe.bits:
                other_bits.append(found[0])
    if not answered:
        raise ClusterError(f"every machine of the cluster at {cluster.address} was lost while it was asked")
    if other_bits:
        warn_of_bits(other_bits)
    return answered


def _answer(cluster: Cluster, machine: Machine, ticket: Ticket) -> Any:
    try:
        return cluster.result(ticket)
    except ClusterError:
        if machine in cluster.machines():
            raise
        return None


def cores_each(machines: list[Machine], recipe: Recipe) -> int:
    """Cores to ask for: those that the model keeps busy, or all of the largest machine where it has fewer."""
    return max(1, min(recipe.cpus, int(max(machine.cpus for machine in machines))))


def warn_of_bits(names: list[str]) -> None:
    """Say that vectors will differ in their last bits."""
    logger.warning(
        "%s rounds otherwise than this machine (another kind of processor, or another release of a library): "
        "vectors are as good, but not the same to the last bit",
        ", ".join(sorted(set(names))),
    )
