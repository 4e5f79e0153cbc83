"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network."""

from typing import Any


def block(source: str, *_: Any, **__: Any) -> str:
    """A fenced block ``math``, in LaTeX, as an element of its own."""
    from latex2mathml.converter import convert

    drawn: str = convert(" ".join(source.split()), display="block")
    return f'<div class="formula">{drawn}</div>'
