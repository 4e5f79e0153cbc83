"""Hybrid retrieval: a weighted sum of scores normalised per query, or fusion by rank.

    scores:  Σ_m w_m · normalised_m(s_m(p)),  Σ w = 1;   for two members  α · first + (1 - α) · second
    rrf:     Σ_m w_m / (damping + rank_m(p))             (Cormack et al., 2009)

    minmax:  (s - min) / (max - min)        zscore:  (s - mean) / standard deviation

Equal scores carry no information, so if all are equal each becomes 0. The candidates are the union of the
members' best. ``scores`` needs a score from every member for each of
them. A member that can compute it does so: the cosine from the fetched vector, MaxSim from the token codes.
For a member that only searches (BM25, sparse vectors), a passage outside of its list gets the score of its
last hit, or 0 if the list contains every passage that shares a term. With ``rrf``, a member adds nothing to a
passage that it did not find.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from dartboard.deadline import check
from dartboard.errors import ConfigError
from dartboard.retrievers.base import Fields, Retriever, best, one_record
from dartboard.retrievers.candidates import Ranked
from dartboard.retrievers.query import Query
from dartboard.stores import Collection, Filter, Record
from dartboard.types import FloatArray

ALPHA = 0.7
DAMPING = 60.0
DEPTH = 100

Fusion = Literal["scores", "rrf"]
FUSIONS: tuple[Fusion, ...] = ("scores", "rrf")

Normalisation = Literal["minmax", "zscore", "none"]
NORMALISATIONS: tuple[Normalisation, ...] = ("minmax", "zscore", "none")


class HybridRetriever(Retriever):
    """Combines several retrievers.

    Args:
        members: At least two retrievers with different names.
        alpha: The weight of the first of two members; .7 if neither it nor ``weights`` is given.
        weights: One per member, by order or by name. Without them, more than two members have equal weights.
        normalise: ``minmax``, ``zscore`` or ``none``: how scores are made comparable.
        method: ``scores``, or ``rrf`` for fusion by rank.
        damping: The constant of reciprocal rank fusion.
        depth: How many candidates each member returns; at least ``k``.
        name: The key of its shares.

    Raises:
        ConfigError: too few members, two with the same name, or weights that do not fit.

    Example:
        >>> HybridRetriever([DenseRetriever(model), BM25Retriever()], alpha=0.6)
    """

    def __init__(
        self,
        members: Sequence[Retriever],
        *,
        alpha: float | None = None,
        weights: Mapping[str, float] | Sequence[float] | None = None,
        normalise: str = "minmax",
        method: str = "scores",
        damping: float = DAMPING,
        depth: int = DEPTH,
        name: str = "hybrid",
    ) -> None:
        super().__init__(name)
        self.members = _checked_members(members)
        if method not in FUSIONS:
            raise ConfigError(f"unknown method {method!r}: choose one of {', '.join(FUSIONS)}")
        if not 0 <= damping < float("inf"):
            raise ConfigError(f"damping must be a finite number >= 0, got {damping}")
        if depth < 1:
            raise ConfigError(f"depth must be >= 1, got {depth}")
        self.normalise = check_normalisation(normalise)
        self.method, self.damping, self.depth = method, damping, depth
        self.weights = _weights([member.name for member in self.members], alpha, weights, method)

    def index_settings(self) -> dict[str, dict[str, Any]]:
        """The members' settings; records depend on nothing else."""
        return {name: kept for member in self.members for name, kept in member.index_settings().items()}

    def fields(self) -> Fields:
        """The fields of all members."""
        needs = [member.fields() for member in self.members]
        return Fields(
            vectors={name: field for need in needs for name, field in need.vectors.items()},
            sparse=tuple(dict.fromkeys(name for need in needs for name in need.sparse)),
            blobs=tuple(dict.fromkeys(name for need in needs for name in need.blobs)),
        )

    def index(self, records: Sequence[Record]) -> list[Record]:
        """The records with the fields of all members."""
        filled = list(records)
        for member in self.members:
            filled = member.index(filled)
        return filled

    def check(self, collection: Collection) -> None:
        """Check that the collection fits every member."""
        for member in self.members:
            member.check(collection)

    def query_vector(self, query: Query) -> FloatArray | None:
        """From the first member that has it."""
        for member in self.members:
            if (vector := member.query_vector(query)) is not None:
                return vector
        return None

    def rank(self, view: Collection, query: Query, k: int, *, where: Filter | None = None) -> Ranked:
        """The best of all members' candidates."""
        if self.method == "rrf":
            members = self._ask(view, query, k, where)
            fused = self._by_rank(members)
            return best(list(fused), np.array(list(fused.values())), k, 0.0)._replace(members=members)
        union, scores = self.member_scores(view, query, k, where=where)
        total = self.combined(scores)
        order = np.argsort(-total, kind="stable")[:k]  # sorted by id, so ties stay in order
        return union._replace(
            ids=[union.ids[at] for at in order],
            scores=total[order],
            floor=float(total.min()) if total.size else 0.0,
            vectors=None if union.vectors is None else union.vectors[order],
        )

    def member_scores(
        self, view: Collection, query: Query, k: int, *, where: Filter | None = None
    ) -> tuple[Ranked, FloatArray]:
        """All members' candidates sorted by id, with vectors, and every member's scores, ``(members, n)``."""
        members = self._ask(view, query, k, where)
        found, vectors = view.unit_vectors(sorted({id for ranked in members.values() for id in ranked.ids}))
        ids = list(found)
        scores = np.empty((len(self.members), len(ids)))
        for row, member in zip(scores, self.members, strict=True):
            ranked = members[member.name]
            known = dict(zip(ranked.ids, ranked.scores.tolist(), strict=True))
            row[:] = [known.get(id, ranked.floor) for id in ids]
            beyond = [at for at, id in enumerate(ids) if id not in known]
            if beyond:
                exact = member.scores(view, query, [ids[at] for at in beyond], vectors[beyond])
                if exact is not None:
                    row[beyond] = exact
        return Ranked(ids, np.zeros(len(ids)), members=members, vectors=vectors), scores

    def combined(self, scores: FloatArray) -> FloatArray:
        """``(n,)`` from ``(members, n)``: normalised per member, then weighted."""
        return weighted_sum(scores, self.weights, self.normalise)

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """Each member's rank, score, share of the sum, and its own explanation."""
        asked = Query(query)
        one_record(collection, chunk_id)
        members = {member.name: dict(member.explain(collection, query, chunk_id)) for member in self.members}
        found: dict[str, Any] = {"method": self.method, "members": members}
        if self.method == "rrf":
            rankings = self._ask(collection, asked, self.depth, None)
            found["score"] = self._by_rank(rankings).get(chunk_id, 0.0)
        else:
            union, scores = self.member_scores(collection, asked, self.depth)
            rankings = union.members
            found["normalise"] = self.normalise
            place = union.ids.index(chunk_id) if chunk_id in union.ids else None
            found["score"] = None if place is None else float(self.combined(scores)[place])
            for row, member in zip(scores, self.members, strict=True):
                share = None if place is None else float(normalised(row, self.normalise)[place])
                members[member.name]["normalised"] = share
        for member, weight in zip(self.members, self.weights, strict=True):
            ids = rankings[member.name].ids
            rank = ids.index(chunk_id) + 1 if chunk_id in ids else None
            members[member.name] |= {"weight": weight, "rank": rank}
        return found

    def _ask(self, view: Collection, query: Query, k: int, where: Filter | None) -> Mapping[str, Ranked]:
        depth, found = max(k, self.depth), {}
        for member in self.members:
            check()
            found[member.name] = member.rank(view, query, depth, where=where)
        return found

    def _by_rank(self, members: Mapping[str, Ranked]) -> dict[str, float]:
        return reciprocal_rank_fusion([each.ids for each in members.values()], self.weights, self.damping)


def check_normalisation(name: str) -> Normalisation:
    """Check a normalisation; the error lists the known ones."""
    for known in NORMALISATIONS:
        if name == known:
            return known
    raise ConfigError(f"unknown normalisation {name!r}: choose one of {', '.join(NORMALISATIONS)}")


def normalised(scores: FloatArray, how: Normalisation) -> FloatArray:
    """The scores of one query, ``(n,)``, normalised."""
    values = scores.astype(np.float64)
    if how == "none" or not values.size:
        return values
    spread = np.ptp(values) if how == "minmax" else values.std()
    if spread <= 1e-12 * max(1.0, float(np.abs(values).max())):
        return np.zeros_like(values)
    made: FloatArray = (values - (values.min() if how == "minmax" else values.mean())) / spread
    return made


def weighted_sum(scores: FloatArray, weights: Sequence[float] | FloatArray, how: Normalisation) -> FloatArray:
    """``(n,)`` from ``(members, n)``: the weighted sum of each member's normalised scores."""
    rows = np.array([normalised(row, how) for row in scores]).reshape(scores.shape)
    total: FloatArray = np.asarray(weights) @ rows
    return total


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[str]], weights: Sequence[float], damping: float
) -> dict[str, float]:
    """The fused score of every id in any ranking; each ranking is best first."""
    fused: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, id in enumerate(ranking, start=1):
            fused[id] = fused.get(id, 0.0) + weight / (damping + rank)
    return fused


def _checked_members(members: Sequence[Retriever]) -> list[Retriever]:
    if len(members) < 2:
        raise ConfigError(f"a hybrid needs at least two members, got {len(members)}")
    names = [member.name for member in members]
    if len(set(names)) < len(names):
        raise ConfigError(f"members need different names, got {', '.join(names)}: pass name=… to one")
    return list(members)


def _weights(
    names: Sequence[str],
    alpha: float | None,
    weights: Mapping[str, float] | Sequence[float] | None,
    method: str,
) -> tuple[float, ...]:
    if alpha is not None:
        if weights is not None:
            raise ConfigError("alpha and weights set the same thing: give one of the two")
        if len(names) != 2:
            raise ConfigError(
                f"alpha weighs two members against each other, but there are {len(names)}: use weights"
            )
        if not 0 <= alpha <= 1:
            raise ConfigError(f"alpha must be in [0, 1], got {alpha}")
        return (float(alpha), 1.0 - float(alpha))
    if weights is None:
        if method == "scores" and len(names) == 2:
            return (ALPHA, 1.0 - ALPHA)
        return (1.0,) * len(names) if method == "rrf" else (1.0 / len(names),) * len(names)
    if isinstance(weights, Mapping):
        if set(weights) != set(names):
            raise ConfigError(
                f"weights name {', '.join(sorted(weights))}; the members are {', '.join(names)}"
            )
        weights = [weights[name] for name in names]
    values = [float(weight) for weight in weights]
    if len(values) != len(names):
        raise ConfigError(f"{len(values)} weights for {len(names)} members: need one each")
    if not all(0 <= value < float("inf") for value in values) or sum(values) == 0:
        raise ConfigError(f"weights must be finite numbers >= 0, not all 0, got {values}")
    return tuple(values) if method == "rrf" else tuple(value / sum(values) for value in values)
