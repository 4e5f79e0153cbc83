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
    def _places(self) -> dict[str, int]:
        return {hit[0]: at for at, hit in enumerate(self._hits)}

    def own(self, id: str) -> Share | None:
        """The retriever's own share, None where it did not find the chunk."""
        at = self._places.get(id)
        return None if at is None else Share(at + 1, self._hits[at].score)

    def __getitem__(self, id: str) -> dict[str, Share]:
        own = self.own(id)
        if own is None:
            raise KeyError(id)
        return {self._name: own, **self.inner.get(id, {})}

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class MemberShares(Shares):
    """Several members' shares by their names, and those of their members under ``member/inner``."""

    def __init__(self, members: Mapping[str, OwnShares]) -> None:
        self._members = members

    def __getitem__(self, id: str) -> dict[str, Share]:
        found: dict[str, Share] = {}
        for name, member in self._members.items():
            own = member.own(id)
            if own is not None:
                found[name] = own
                found |= {f"{name}/{inner}": share for inner, share in member.inner.get(id, {}).items()}
        if not found:
            raise KeyError(id)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(id for member in self._members.values() for id in member))

    def __len__(self) -> int:
        return sum(1 for _ in self)
