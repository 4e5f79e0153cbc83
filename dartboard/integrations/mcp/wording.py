"""Answers in words, for clients that show text.

Quoted passages stand between marks that carry a random word, so that no passage can pretend to be the end
of itself and the beginning of something else.
"""

import secrets

from dartboard.integrations.mcp.answers import (
    NOTICE,
    ExplainAnswer,
    Passage,
    SearchAnswer,
    SelectAnswer,
)
from dartboard.integrations.mcp.phrases import one_line, share


def search_text(answer: SearchAnswer) -> str:
    """The passages, each with where it stands and why it is there."""
    if not answer.passages:
        if answer.candidates:
            return f"None of the {answer.candidates} candidates fits: allow more tokens."
        return "Nothing found: nothing in the index matches. Ask in other words, or without a filter."
    word = secrets.token_hex(4)
    count = len(answer.passages)
    if answer.relevance.message:
        head = (
            f"{answer.relevance.message} The {count} nearest of {answer.candidates} candidates "
            "follow all the same. Do not take them for an answer: ask in other words, look elsewhere, or say "
            "that the index does not tell."
        )
    else:
        head = (
            f"{count} passage{'s' * (count != 1)} of {answer.candidates} candidates, chosen by "
            f"{answer.method}; together they cover {answer.coverage:.0%} of what the candidates say."
        )
    return "\n\n".join([head, NOTICE, *(_passage(passage, word) for passage in answer.passages)])


def select_text(answer: SelectAnswer) -> str:
    """The positions that were picked."""
    if not answer.picks:
        return f"None of the {answer.candidates} candidates fits: allow more tokens."
    lines = [
        f"{len(answer.picks)} of {answer.candidates} candidates, chosen by {answer.method}; "
        f"together they cover {answer.coverage:.0%}. Positions count from 0."
    ]
    for pick in answer.picks:
        others = [str(one) for one in pick.stands_for if one != pick.position]
        stands = f", stands for itself and {_few(others)}" if others else ""
        lines.append(
            f"{pick.rank}. position {pick.position}: gain {share(pick.gain)}, coverage {pick.coverage:.0%}, "
            f"similarity {pick.similarity:.2f}{stands}"
        )
    return "\n".join(lines)


def explain_text(answer: ExplainAnswer) -> str:
    """The verdict and the steps."""
    where = f" ({one_line(answer.source)})" if answer.source else ""
    lines = [f"Passage {one_line(answer.id)}{where}: {answer.verdict}.", answer.why]
    others = [
        name for name, chosen in (("top_k", answer.chosen_by_top_k), ("mmr", answer.chosen_by_mmr)) if chosen
    ]
    if answer.verdict != "not a candidate":
        lines.append(f"Rank {answer.retriever_rank} of {answer.candidates} candidates by the retriever.")
    if others:
        lines.append(f"It would be chosen by {' and '.join(others)}.")
    for step in answer.steps:
        rival = step.runner_up
        second = f"; second was {one_line(rival.id)} with {share(rival.gain)}" if rival else ""
        own = ""
        if step.this_passage is not None and step.id != answer.id:
            own = f"; this passage would have added {share(step.this_passage)}"
        gained = f"gain {share(step.gain)}, coverage {step.coverage:.0%}"
        lines.append(f"{step.rank}. {one_line(step.id)}: {gained}{second}{own}")
    return "\n".join(lines)


def _passage(passage: Passage, word: str) -> str:
    where = one_line(", ".join(part for part in (passage.source, passage.place) if part) or passage.id)
    stands = ""
    if (count := passage.stands_for_count - 1) > 0:
        stands = f"; stands for itself and {count} other candidate{'s' * (count != 1)} that say the same"
    heading = f"[{passage.heading}]\n" if passage.heading else ""
    end = " (cut)" if passage.cut else ""
    return (
        f"[{passage.rank}] {where}\n"
        f"id {one_line(passage.id)}; gain {share(passage.gain)}; "
        f"coverage so far {passage.coverage:.0%}{stands}\n"
        f"<passage-{word}>\n{heading}{passage.text}{end}\n</passage-{word}>"
    )


def _few(entries: list[str]) -> str:
    more = f" and {len(entries) - 5} more" if len(entries) > 5 else ""
    return ", ".join(entries[:5]) + more
