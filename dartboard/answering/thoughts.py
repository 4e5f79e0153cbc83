"""Thoughts that a model writes before its answer, between ``<think>`` and ``</think>``, are left out."""

_OPEN, _CLOSE = "<think>", "</think>"


class Thoughts:
    """Takes thoughts off the beginning of a text that comes in pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._past = False

    def after(self, piece: str) -> str:
        """What of the answer itself is there, now that this piece has come."""
        if self._past:
            return piece
        self._held += piece
        start = self._held.lstrip()
        if not self._inside:
            if len(start) < len(_OPEN) and _OPEN.startswith(start):
                return ""
            self._inside = start.startswith(_OPEN)
        if not self._inside:
            return self._released(start)
        end = start.find(_CLOSE)
        if end < 0:
            return ""
        rest = start[end + len(_CLOSE) :].lstrip()
        if not rest:
            self._held = _OPEN + _CLOSE
            return ""
        return self._released(rest)

    def rest(self) -> str:
        """What is still held at the end: the beginning of what turned out to be no thought."""
        held = "" if self._past or self._inside else self._held
        self._past = True
        return held

    def _released(self, text: str) -> str:
        self._past, self._held = True, ""
        return text
