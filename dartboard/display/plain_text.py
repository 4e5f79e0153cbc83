"""Text from anywhere, made harmless for a terminal and for a page.

A passage may hold escape sequences that move a terminal's cursor, or marks that turn the direction of what
follows. Control characters (the escape of terminal codes among them), characters that turn the direction of
writing, and invisible tags are left out; half surrogates, which no file can hold, become question marks.
Each character is judged by itself, so a text may come in any number of pieces.
"""

import re

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def plain_text(text: str) -> str:
    """The text without what steers; line ends and tabs stay."""
    return _STEERING.sub("", text.encode("utf-8", "replace").decode())


def clean(text: object) -> str:
    """The same in one line: runs of white space become one space."""
    return plain_text(" ".join(str(text).split()))


def shortened(text: object, most: int) -> str:
    """The beginning in one line, ``most`` characters at most, cut between words where that is near."""
    line = clean(text)
    if len(line) <= most:
        return line
    cut = line[: most - 2]
    last = cut.rfind(" ")
    return f"{cut[:last] if last > 0.7 * most else cut} …"
