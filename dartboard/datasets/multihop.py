"""Questions that need several paragraphs: HotpotQA (distractor setting) and MuSiQue.

Both give every question its own paragraphs, some of which support the answer. Here all paragraphs form one
corpus, and the supporting ones are the question's kernel: without all of them it cannot be answered. Each
is a facet of its own, in the order of the reasoning.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dartboard.datasets.rows import Place, Record, json_array, json_lines, need_file
from dartboard.datasets.text import PassagePool, TextDataset, flat_strings, unique


@dataclass(frozen=True, slots=True)
class _Question:
    place: Place
    id: str
    text: str
    answers: list[str]
    paragraphs: list[str]
    kernel: list[str]


def load_hotpotqa(path: str | Path) -> TextDataset:
    """HotpotQA's distractor file: ``_id``, ``question``, ``answer``, ``context``, ``supporting_facts`` a row.

    Contexts may be pairs of title and sentences (the original file) or an object of two lists (the hub's).
    """
    file = need_file(Path(path), "expected hotpot_dev_distractor_v1.json or another file of this format")
    pool = PassagePool("p")
    questions = [_hotpot_question(record, pool) for record in json_array(file)]
    return _dataset(file, pool, questions)


def load_musique(path: str | Path) -> TextDataset:
    """MuSiQue's JSON lines: ``id``, ``question``, ``answer``, ``answer_aliases``, ``paragraphs`` a row.

    Questions marked as not answerable have no kernel and are left out.
    """
    file = need_file(Path(path), "expected musique_ans_v1.0_dev.jsonl or another file of this format")
    pool = PassagePool("p")
    questions = [
        _musique_question(record, pool)
        for record in json_lines(file)
        if record.fields.get("answerable", True) is not False
    ]
    return _dataset(file, pool, questions)


def _hotpot_question(record: Record, pool: PassagePool) -> _Question:
    by_title: dict[str, str] = {}
    for title, sentences in _pairs(record, "context", "sentences"):
        if not isinstance(sentences, list):
            raise record.place.error("'context' must pair each title with a list of sentences")
        by_title[str(title)] = pool.add("".join(map(str, sentences)).strip(), str(title))
    titles = unique([str(title) for title, _ in _pairs(record, "supporting_facts", "sent_id")])
    if not titles:
        raise record.place.error("'supporting_facts' is empty: the question has no kernel")
    for title in titles:
        if title not in by_title:
            raise record.place.error(f"supporting fact {title!r} is not among the titles of its context")
    return _Question(
        record.place,
        record.identifier("_id", "id"),
        record.text("question"),
        flat_strings(record.fields.get("answer")),
        unique(list(by_title.values())),
        unique([by_title[title] for title in titles]),
    )


def _pairs(record: Record, name: str, second: str) -> list[tuple[Any, Any]]:
    """Pairs that are written as pairs, or as two lists under ``title`` and ``second``."""
    value = record.fields.get(name)
    if (
        isinstance(value, dict)
        and isinstance(value.get("title"), list)
        and isinstance(value.get(second), list)
    ):
        return list(zip(value["title"], value[second], strict=False))
    pairs = record.list(name)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise record.place.error(f"{name!r} must be a list of pairs of a title and its {second}")
    return [(first, other) for first, other in pairs]


def _musique_question(record: Record, pool: PassagePool) -> _Question:
    ids: dict[int, str] = {}
    supporting: list[int] = []
    for place, paragraph in enumerate(record.list("paragraphs")):
        if not isinstance(paragraph, dict) or not isinstance(paragraph.get("paragraph_text"), str):
            raise record.place.error("each of 'paragraphs' must be an object with 'paragraph_text'")
        number = paragraph.get("idx", place)
        if not isinstance(number, int) or number in ids:
            raise record.place.error(f"'idx' of a paragraph must be a number of its own, got {number!r}")
        ids[number] = pool.add(paragraph["paragraph_text"], str(paragraph.get("title", "")))
        if paragraph.get("is_supporting"):
            supporting.append(number)
    if not supporting:
        raise record.place.error("no paragraph has 'is_supporting': the question has no kernel")
    return _Question(
        record.place,
        record.identifier("id"),
        record.text("question"),
        unique(flat_strings([record.fields.get("answer"), record.fields.get("answer_aliases")])),
        unique(list(ids.values())),
        unique([ids[number] for number in _reasoning_order(record, supporting)]),
    )


def _reasoning_order(record: Record, supporting: list[int]) -> list[int]:
    """Supporting paragraphs as the steps of the question use them, then any that no step names."""
    steps = record.list("question_decomposition", required=False)
    named = [step.get("paragraph_support_idx") for step in steps if isinstance(step, dict)]
    return [number for number in named if number in supporting] + supporting


def _dataset(file: Path, pool: PassagePool, questions: Iterable[_Question]) -> TextDataset:
    listed: dict[str, _Question] = {}
    for question in questions:
        if question.id in listed:
            first = listed[question.id].place.short()
            raise question.place.error(f"question id {question.id!r} occurs twice, first at {first}")
        listed[question.id] = question
    return TextDataset(
        name=file.name.removesuffix(".gz").rpartition(".")[0],
        passages=pool.passages,
        queries={one.id: one.text for one in listed.values()},
        qrels={
            one.id: dict.fromkeys(one.paragraphs, 0) | dict.fromkeys(one.kernel, 1) for one in listed.values()
        },
        facets={
            one.id: {str(hop): [passage] for hop, passage in enumerate(one.kernel, start=1)}
            for one in listed.values()
        },
        kernels={one.id: one.kernel for one in listed.values()},
        answers={one.id: one.answers for one in listed.values()},
        pools={one.id: one.paragraphs for one in listed.values()},
        metadata={"type": "real"},
    )
