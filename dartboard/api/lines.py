"""Lines of a body as it arrives, none longer than a limit, however the client cuts it into parts."""

from collections.abc import AsyncIterator
from typing import NamedTuple


class Line(NamedTuple):
    """A line with its number from 1; ``data`` is None where it was too long to be kept."""

    number: int
    data: bytes | None


async def lines_of(body: AsyncIterator[bytes], longest: int) -> AsyncIterator[Line]:
    """Every line that holds more than space; at most ``longest`` bytes of one are in memory."""
    number, kept, too_long = 1, bytearray(), False
    async for part in body:
        if part.isspace() and not kept:
            number += part.count(b"\n")
            continue
        start = 0
        while (end := part.find(b"\n", start)) >= 0:
            too_long = _add(kept, part[start:end], longest) or too_long
            if too_long or kept.strip():
                yield Line(number, None if too_long else bytes(kept))
            kept, too_long, number, start = bytearray(), False, number + 1, end + 1
        too_long = _add(kept, part[start:], longest) or too_long
    if too_long or kept.strip():
        yield Line(number, None if too_long else bytes(kept))


def _add(kept: bytearray, more: bytes, longest: int) -> bool:
    """Keep what fits; whether something did not."""
    kept += more[: longest + 1 - len(kept)]
    return len(kept) > longest
