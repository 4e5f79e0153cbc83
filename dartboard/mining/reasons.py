"""Why verdicts are UNSURE, counted: many for one reason are a fault that can be mended."""

import re
from collections import Counter
from collections.abc import Iterable

from dartboard.mining.verdicts import Verdict

_LONGEST = 160
_DETAIL = re.compile(r": ['\"]|; |: (?=\S+ says )")


def reasons_of(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """The reasons of the UNSURE ones with their numbers, the commonest first, equal ones by name."""
    counted = Counter(_kind(verdict) for verdict in verdicts if verdict.label == "UNSURE")
    return dict(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


def _kind(verdict: Verdict) -> str:
    """A reason without what is special to its verdict: the words that it quotes, who else said what."""
    said = " ".join(verdict.reason.split()) or "no reason was given"
    if verdict.answered:
        said = _DETAIL.split(said, maxsplit=1)[0]
    return said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…"
