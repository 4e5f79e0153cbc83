"""An exploration of a question, told from the side of one passage."""

from dartboard.engine import Engine
from dartboard.explain.exploration import Exploration, ExploredCandidate
from dartboard.explain.trace import Step as Traced
from dartboard.integrations.mcp import limits
from dartboard.integrations.mcp.answers import ExplainAnswer, Rival, Step, one_line, share
from dartboard.plain_text import counted
from dartboard.retrievers.query import Query
from dartboard.retrievers.ranking import cosines
from dartboard.stores import Filter
from dartboard.types import Chunk

SAME = 0.5
"""From this share on, a pick is said to stand for a passage."""


def explained(found: Exploration, place: int) -> ExplainAnswer:
    """Of a candidate, by its place among the candidates."""
    picks = found.methods["dartboard"].picks
    chosen = place in picks
    by, cover = found.covered_by[place], found.cover[place]
    other = None if chosen or by is None else found.candidates[by].id
    return _answer(
        found,
        found.candidates[place],
        place,
        verdict="chosen" if chosen else "not chosen",
        why=_why_chosen(found, place) if chosen else _why_not(found, place, by, cover),
        rank=picks.index(place) + 1 if chosen else None,
        retriever_rank=place + 1,
        similarity=found.candidates[place].similarity,
        redundant_with=other,
        redundancy=None if other is None else cover,
        chosen_by_top_k=place in found.methods["top_k"].picks,
        chosen_by_mmr=place in found.methods["mmr"].picks,
    )


def left_out(found: Exploration, chunk: Chunk, engine: Engine, where: Filter | None) -> ExplainAnswer:
    """Of a passage that is in the index and not among the candidates."""
    similarity = float(cosines(Query(found.query).vector(engine.model), chunk.embedding[None])[0])
    if where is not None and not where.matches(chunk.metadata, chunk.id):
        why = "Its metadata do not match the filter."
    else:
        why = (
            f"The retriever ({found.retriever}) has {len(found.candidates)} passages that match the question "
            f"better; only those were compared. Its similarity to the question is {similarity:.2f}."
        )
    return _answer(found, chunk, None, verdict="not a candidate", why=why, similarity=similarity)


def _why_chosen(found: Exploration, place: int) -> str:
    number = found.methods["dartboard"].picks.index(place)
    step = found.steps[number]
    others = len(step.stands_for) - 1
    stands = f" It also stands for {counted(others, 'other candidate')}." if others > 0 else ""
    if number == 0 and step.criterion == "probability":
        return f"It is the likeliest answer: the first pick, which covers {share(step.gain)} alone.{stands}"
    rule = "adds most per token" if step.criterion == "gain_per_token" else "adds most"
    lead = ""
    if step.runner_up is not None and step.runner_up.behind is not None:
        rival = found.candidates[step.runner_up.index]
        lead = f", ahead of {_name(rival)} by {step.runner_up.behind:.0%}"
    return (
        f"Of what was left, it {rule} to the {counted(number, 'pick')} before it "
        f"({share(step.gain)}{lead}).{stands}"
    )


def _why_not(found: Exploration, place: int, by: int | None, cover: float) -> str:
    picks = found.methods["dartboard"].picks
    if not picks:
        return "Nothing was chosen: no passage fits the token budget."
    last = found.steps[-1]
    adds = _gain(last, place)
    if by is not None and cover >= SAME:
        return (
            f"Pick {picks.index(by) + 1} ({_name(found.candidates[by])}) says nearly the same: it stands in "
            f"for this passage to {cover:.0%}, so that adding it would gain little."
        )
    wanted = (
        "" if adds is None else f": {share(adds)} at the last step, where the pick added {share(last.gain)}"
    )
    return (
        f"No pick says the same (the nearest stands in for it to {cover:.0%}), but the passages that were "
        f"chosen add more{wanted}. A larger k or budget may reach it."
    )


def _answer(
    found: Exploration, chunk: Chunk | ExploredCandidate, place: int | None, **facts: object
) -> ExplainAnswer:
    about = {
        "rank": None,
        "retriever_rank": None,
        "redundant_with": None,
        "redundancy": None,
        "chosen_by_top_k": False,
        "chosen_by_mmr": False,
        **facts,
    }
    return ExplainAnswer.model_validate(
        {
            "query": found.query,
            "id": chunk.id,
            "source": source_of(chunk),
            "text": chunk.text[: limits.SHOWN_CHARACTERS],
            "candidates": len(found.candidates),
            "sigma": found.sigma.value,
            "steps": [_step(found, at, step, place) for at, step in enumerate(found.steps)],
            **about,
        }
    )


def _step(found: Exploration, at: int, step: Traced, place: int | None) -> Step:
    chunk, second = found.candidates[step.pick], None
    if (rival := step.runner_up) is not None:
        other = found.candidates[rival.index]
        second = Rival(id=other.id, source=source_of(other), gain=rival.gain, behind=rival.behind)
    return Step(
        rank=at + 1,
        id=chunk.id,
        source=source_of(chunk),
        gain=step.gain,
        coverage=step.coverage,
        chosen_by=step.criterion,
        runner_up=second,
        this_passage=None if place is None else _gain(step, place),
    )


def _gain(step: Traced, place: int) -> float | None:
    return step.gains[place]


def source_of(chunk: Chunk | ExploredCandidate) -> str | None:
    """The document that a passage comes from, in one line."""
    return " ".join(str(chunk.metadata.get("source") or "").split()) or None


def _name(chunk: Chunk | ExploredCandidate) -> str:
    return one_line(source_of(chunk) or chunk.id)
