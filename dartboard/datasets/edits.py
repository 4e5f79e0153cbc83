"""Edit a text so that it still says the same: how one passage comes to stand five times in a corpus."""

import re
from collections.abc import Callable

import numpy as np

from dartboard.datasets.splitting import sentences

Edit = Callable[[str, np.random.Generator], str]

_LEADS = (
    "Home > Knowledge base > Article.",
    "This page was last updated recently. Print this page.",
    "Skip to main content.",
    "Frequently asked questions. See also the related articles below.",
)
_TAILS = (
    "Was this page helpful? Yes / No.",
    "Share this article. All rights reserved.",
    "Contact us for more information.",
    "Terms of use. Privacy policy. Cookie settings.",
)
_REVISIONS = {
    "about": "around",
    "after": "following",
    "also": "as well",
    "although": "even though",
    "approximately": "about",
    "are not": "aren't",
    "because": "since",
    "began": "started",
    "between": "in between",
    "big": "large",
    "can": "is able to",
    "cannot": "is unable to",
    "contains": "holds",
    "do not": "don't",
    "during": "in the course of",
    "enough": "sufficient",
    "first": "initially",
    "for example": "for instance",
    "has been": "was",
    "however": "but",
    "in order to": "to",
    "is not": "isn't",
    "known as": "called",
    "large": "big",
    "later": "afterwards",
    "located in": "situated in",
    "many": "numerous",
    "may": "might",
    "mostly": "for the most part",
    "must": "has to",
    "near": "close to",
    "often": "frequently",
    "only": "solely",
    "part of": "a portion of",
    "released": "brought out",
    "several": "a number of",
    "shows": "demonstrates",
    "small": "little",
    "such as": "like",
    "therefore": "so",
    "used": "employed",
    "usually": "as a rule",
    "various": "different",
    "was born": "came into the world",
    "was not": "wasn't",
    "while": "whereas",
    "with": "along with",
}
_REVISED_SHARE = 0.7


def truncate(text: str, rng: np.random.Generator) -> str:
    """The first 60 to 90 % of the words."""
    words = text.split()
    kept = int(len(words) * rng.uniform(0.6, 0.9))
    return " ".join(words[:kept]) if 0 < kept < len(words) else surround(text, rng)


def shuffle(text: str, rng: np.random.Generator) -> str:
    """The sentences in another order; a lone sentence gets boilerplate instead."""
    parts = sentences(text)
    if len(set(parts)) < 2:
        return surround(text, rng)
    order = rng.permutation(len(parts))
    if [parts[place] for place in order] == parts:
        order = np.roll(order, 1)
    return " ".join(parts[place] for place in order)


def surround(text: str, rng: np.random.Generator) -> str:
    """The text with what web pages put around it."""
    return f"{rng.choice(_LEADS)} {text} {rng.choice(_TAILS)}"


def revise(text: str, rng: np.random.Generator) -> str:
    """The text with other words of the same meaning; where it has none of them, introduced otherwise."""

    def replacement(found: re.Match[str]) -> str:
        if rng.random() > _REVISED_SHARE:
            return found.group()
        new = _REVISIONS[found.group().lower()]
        return new.capitalize() if found.group()[0].isupper() else new

    revised = _REVISABLE.sub(replacement, text)
    return revised if revised != text else f"As noted before: {text}"


_REVISABLE = re.compile(
    r"\b(" + "|".join(sorted(map(re.escape, _REVISIONS), key=len, reverse=True)) + r")\b", re.IGNORECASE
)

EDITS: dict[str, Edit] = {
    "truncate": truncate,
    "shuffle": shuffle,
    "boilerplate": surround,
    "revise": revise,
}
