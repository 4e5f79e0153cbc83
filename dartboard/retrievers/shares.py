"""What each member of a retriever said of a candidate, put together for those that somebody asks about."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from dartboard.retrievers.base import Share
from dartboard.types import Hit

Shares = Mapping[str, Mapping[str, Share]]
"""By chunk's id, then by member's name."""


class OwnShares(Shares):
    """A retriever's own rank and score of each of its hits, and what its members said of it."""

    def __init__(self, name: str, hits: Sequence[Hit], inner: Shares) -> None:
        self.inner = inner
        self._name, self._hits = name, hits

    @cached_property
    def own(self) -> dict[str, Share]:
        """By id, the retriever's own."""
        return {id: Share(rank, score) for rank, (id, score) in enumerate(self._hits, start=1)}

    def __getitem__(self, id: str) -> dict[str, Share]:
        return {self._name: self.own[id], **self.inner.get(id, {})}

    def __iter__(self) -> Iterator[str]:
        return iter(self.own)

    def __len__(self) -> int:
        return len(self.own)


class MemberShares(Shares):
    """Several members' shares by their names, and those of their members under ``member/inner``."""

    def __init__(self, members: Mapping[str, OwnShares]) -> None:
        self._members = members

    def __getitem__(self, id: str) -> dict[str, Share]:
        found: dict[str, Share] = {}
        for name, member in self._members.items():
            if id in member.own:
                found[name] = member.own[id]
                found |= {f"{name}/{inner}": share for inner, share in member.inner.get(id, {}).items()}
        if not found:
            raise KeyError(id)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(id for member in self._members.values() for id in member.own))

    def __len__(self) -> int:
        return sum(1 for _ in self)
