"""Several retrievers as one: a weighted sum of scores normalised per query, or fusion by rank.

    scores:  Σ_m w_m · normalised_m(s_m(p)),  Σ w = 1;   for two members  α · first + (1 - α) · second
    rrf:     Σ_m w_m / (damping + rank_m(p))             (Cormack et al., 2009)

The candidates are all that any member found among its best. For ``scores`` each of them needs a score from
every member. A member that can work it out does: the cosine from the fetched vector, MaxSim from the token
codes. One that only searches (BM25, sparse vectors) counts a passage beyond its list as its last hit, or as
0 where the list holds everything that shares a term. For ``rrf`` a passage that a member did not find earns
nothing there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dartboard.deadline import check
from dartboard.errors import ConfigError
from dartboard.retrievers.asking import Question
from dartboard.retrievers.base import Fields, Retriever
from dartboard.retrievers.normalising import check_normalisation, normalised, weighed
from dartboard.retrievers.passages import Passages
from dartboard.retrievers.ranking import Ranking, RankingRetriever, best, one_record, ranking_of
from dartboard.retrievers.shares import MemberShares, OwnShares, Shares
from dartboard.stores import Collection, Filter, Record
from dartboard.types import Chunk, FloatArray, Hit

ALPHA = 0.7
DAMPING = 60.0
DEPTH = 100

Fusion = Literal["scores", "rrf"]
FUSIONS: tuple[Fusion, ...] = ("scores", "rrf")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """What every member says of every candidate: ``scores``, ``(members, n)``; ``passages``, n, by id."""

    passages: Passages
    scores: FloatArray
    rankings: list[Ranking]


class HybridRetriever(RankingRetriever):
    """Members weighed against each other; each is asked for ``depth`` candidates, or ``k`` if that is more.

    Give ``weights`` (one a member, by order or by name), or ``alpha`` for two: the first member's share.
    Without either, ``scores`` takes α = .7 for two members, and everything else weighs alike.
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
        """Those of the members: records depend on nothing else."""
        return {name: kept for member in self.members for name, kept in member.index_settings().items()}

    def fields(self) -> Fields:
        """What all members need."""
        needs = [member.fields() for member in self.members]
        return Fields(
            vectors={name: field for need in needs for name, field in need.vectors.items()},
            sparse=tuple(dict.fromkeys(name for need in needs for name in need.sparse)),
            blobs=tuple(dict.fromkeys(name for need in needs for name in need.blobs)),
        )

    def index(self, records: Sequence[Record]) -> list[Record]:
        """The records with every member's fields."""
        filled = list(records)
        for member in self.members:
            filled = member.index(filled)
        return filled

    def check(self, collection: Collection) -> None:
        """The collection suits every member."""
        for member in self.members:
            member.check(collection)

    def query_vector(self, question: Question) -> FloatArray | None:
        """From the first member that knows it."""
        vectors = (member.query_vector(question) for member in self.members)
        return next((vector for vector in vectors if vector is not None), None)

    def rank(
        self, collection: Collection, question: Question, k: int, *, where: Filter | None = None
    ) -> Ranking:
        """The best of all members' candidates."""
        if self.method == "rrf":
            rankings = self._ask(collection, question, k, where)
            earned = best([Hit(id, score) for id, score in self._by_rank(rankings).items()], k)
            passages = Passages.find(collection, [hit.id for hit in earned], _known(rankings))
            return Ranking(hits=earned, passages=passages, shares=self._shares(rankings))
        table = self.table(collection, question, k, where=where)
        total = self.combined(table.scores)
        order = np.argsort(-total, kind="stable")[:k].tolist()  # by rising id, so equal scores stay so
        passages = table.passages.at(order)
        return Ranking(
            hits=[Hit(id, score) for id, score in zip(passages.ids, total[order].tolist(), strict=True)],
            passages=passages,
            floor=float(total.min()) if total.size else 0.0,
            shares=self._shares(table.rankings),
        )

    def table(
        self, collection: Collection, question: Question, k: int, *, where: Filter | None = None
    ) -> Table:
        """Every candidate with every member's score."""
        rankings = self._ask(collection, question, k, where)
        ids = sorted({hit.id for ranking in rankings for hit in ranking.hits})
        passages = Passages.find(collection, ids, _known(rankings))
        rows = [
            _filled(member, ranking, collection, question, passages)
            for member, ranking in zip(self.members, rankings, strict=True)
        ]
        return Table(passages=passages, scores=np.array(rows).reshape(len(rows), -1), rankings=rankings)

    def combined(self, scores: FloatArray) -> FloatArray:
        """``(n,)`` from ``(members, n)``: normalised per member, then weighed."""
        return weighed(scores, self.weights, self.normalise)

    def scores(self, collection: Collection, question: Question, passages: Passages) -> FloatArray | None:
        """None: a fused score has a meaning among the query's candidates only."""
        return None

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """Each member's rank, score, share of the sum, and its own explanation."""
        question = Question(query)
        one_record(collection, chunk_id)
        members = {member.name: dict(member.explain(collection, query, chunk_id)) for member in self.members}
        found: dict[str, Any] = {"method": self.method, "members": members}
        if self.method == "rrf":
            rankings = self._ask(collection, question, self.depth, None)
            found["score"] = self._by_rank(rankings).get(chunk_id, 0.0)
        else:
            table = self.table(collection, question, self.depth)
            rankings = table.rankings
            found["normalise"] = self.normalise
            place = {id: at for at, id in enumerate(table.passages.ids)}.get(chunk_id)
            found["score"] = None if place is None else float(self.combined(table.scores)[place])
            for row, member in zip(table.scores, self.members, strict=True):
                share = None if place is None else float(normalised(row, self.normalise)[place])
                members[member.name]["normalised"] = share
        for member, weight, ranking in zip(self.members, self.weights, rankings, strict=True):
            ranks = {hit.id: rank for rank, hit in enumerate(ranking.hits, start=1)}
            members[member.name] |= {"weight": weight, "rank": ranks.get(chunk_id)}
        return found

    def _ask(self, collection: Collection, question: Question, k: int, where: Filter | None) -> list[Ranking]:
        depth, rankings = max(k, self.depth), []
        for member in self.members:
            check()
            rankings.append(member.rank(collection, question, depth, where=where))
        return rankings

    def _by_rank(self, rankings: Sequence[Ranking]) -> dict[str, float]:
        earned: dict[str, float] = {}
        for ranking, weight in zip(rankings, self.weights, strict=True):
            for rank, hit in enumerate(ranking.hits, start=1):
                earned[hit.id] = earned.get(hit.id, 0.0) + weight / (self.damping + rank)
        return earned

    def _shares(self, rankings: Sequence[Ranking]) -> Shares:
        """By id: each member's own share, and those of its members under ``member/inner``."""
        members = zip(self.members, rankings, strict=True)
        return MemberShares(
            {member.name: OwnShares(member.name, ranking.hits, ranking.shares) for member, ranking in members}
        )


def _known(rankings: Sequence[Ranking]) -> dict[str, Chunk]:
    """The chunks that members have read already."""
    return {
        id: chunk
        for ranking in rankings
        if ranking.passages is not None
        for id, chunk in ranking.passages.known.items()
    }


def _filled(
    member: RankingRetriever,
    ranking: Ranking,
    collection: Collection,
    question: Question,
    passages: Passages,
) -> FloatArray:
    """``(n,)``: the member's score of every candidate, by the rule that the module states."""
    found: dict[str, float] = dict(ranking.hits)
    beyond = [at for at, id in enumerate(passages.ids) if id not in found]
    scores = np.array([found.get(id, ranking.floor) for id in passages.ids], dtype=np.float64)
    if beyond:
        exact = member.scores(collection, question, passages.at(beyond))
        if exact is not None:
            scores[beyond] = exact
    return scores


def _checked_members(members: Sequence[Retriever]) -> list[RankingRetriever]:
    listed = [ranking_of(member) for member in members]
    if len(listed) < 2:
        raise ConfigError(f"a hybrid needs two members or more, got {len(listed)}")
    names = [member.name for member in listed]
    if len(set(names)) < len(names):
        raise ConfigError(f"members need names of their own, got {', '.join(names)}: pass name=… to one")
    return listed


def _weights(
    names: Sequence[str],
    alpha: float | None,
    weights: Mapping[str, float] | Sequence[float] | None,
    method: str,
) -> tuple[float, ...]:
    if alpha is not None:
        if weights is not None:
            raise ConfigError("alpha and weights say the same thing: give one of the two")
        if len(names) != 2:
            raise ConfigError(
                f"alpha weighs two members against each other, here are {len(names)}: use weights"
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
