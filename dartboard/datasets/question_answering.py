"""Question answering sets whose rows contain their passages: RGB, HotpotQA (distractor), MuSiQue.

All passages of a file form one corpus, in which equal texts with equal titles are one passage. A question's
own passages are its pool. Supporting passages are relevant and form facets: in HotpotQA and MuSiQue, each
supporting paragraph is one, in the order of the reasoning. If every facet has a single passage, these
passages are the question's kernel: all of them are needed for an answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dartboard.datasets.records import Place, Record, json_array, json_lines, need_file
from dartboard.datasets.text_dataset import (
    Groups,
    Passage,
    TextDataset,
    flat_strings,
    single_passage_kernels,
    unique,
)


def load_rgb(path: str | Path) -> TextDataset:
    """RGB (Chen et al., AAAI 2024); rows have ``id``, ``query``, ``answer``, ``positive``, ``negative``.

    If ``positive`` is a list of lists, each inner list answers one part of the question: a facet. The
    optional ``positive_wrong`` are positives with a false fact: similar to the truth, but not relevant.
    ``metadata["positive_wrong"]`` lists them; ``metadata["answer_parts"]`` lists the parts that an answer
    needs, each with its spellings.

    Args:
        path: The file.

    Returns:
        The data set without embeddings.

    Raises:
        DatasetError: the file is missing or a row is malformed.
    """
    file = need_file(Path(path), "expected a file of RGB, such as en_int.json")
    corpus = _Corpus("d")
    questions: list[_Question] = []
    parts: dict[str, list[list[str]]] = {}
    wrong: Groups = {}
    for record in json_array(file):
        query_id, text = record.identifier("id"), record.text("query")
        if not text.strip():
            raise record.place.error("'query' is empty: every row needs a question")
        facets = _rgb_facets(record, corpus)
        positive = [one for ids in facets.values() for one in ids]
        negative = _rgb_passages(record, "negative", record.list("negative"), corpus)
        false = _rgb_passages(record, "positive_wrong", record.list("positive_wrong", required=False), corpus)
        answer = record.fields.get("answer")
        pool = unique([*positive, *negative, *false])
        questions.append(_Question(record.place, query_id, text, flat_strings(answer), pool, facets))
        # An answer needs all parts, each in any spelling; a part is a list of spellings, or one string.
        listed = answer if isinstance(answer, list) else [answer]
        parts[query_id] = [spelled for part in listed if (spelled := flat_strings(part))]
        if false:
            wrong[query_id] = [one for one in unique(false) if one not in positive]
    name = f"rgb_{file.name.split('.')[0].removeprefix('rgb_')}"
    return _dataset(name, corpus, questions, positive_wrong=wrong, answer_parts=parts)


def load_hotpotqa(path: str | Path) -> TextDataset:
    """HotpotQA (distractor); rows have ``_id``, ``question``, ``answer``, ``context``, ``supporting_facts``.

    Contexts are pairs of title and sentences (original file) or an object of two lists (Hugging Face).

    Args:
        path: The file.

    Returns:
        The data set without embeddings.

    Raises:
        DatasetError: the file is missing or a row is malformed.
    """
    file = need_file(Path(path), "expected hotpot_dev_distractor_v1.json or another file of this format")
    corpus = _Corpus("p")
    return _dataset(_stem(file), corpus, (_hotpot_question(record, corpus) for record in json_array(file)))


def load_musique(path: str | Path) -> TextDataset:
    """MuSiQue as JSON lines: ``id``, ``question``, ``answer``, ``answer_aliases``, ``paragraphs``.

    Questions marked as not answerable have no kernel and are skipped.

    Args:
        path: The file.

    Returns:
        The data set without embeddings.

    Raises:
        DatasetError: the file is missing or a row is malformed.
    """
    file = need_file(Path(path), "expected musique_ans_v1.0_dev.jsonl or another file of this format")
    corpus = _Corpus("p")
    answerable = (one for one in json_lines(file) if one.fields.get("answerable", True) is not False)
    return _dataset(_stem(file), corpus, (_musique_question(record, corpus) for record in answerable))


@dataclass(frozen=True, slots=True)
class _Question:
    place: Place
    id: str
    text: str
    answers: list[str]
    pool: list[str]
    facets: dict[str, list[str]]


class _Corpus:
    """Passages collected from many rows; equal passages get one id."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._ids: dict[tuple[str, str], str] = {}
        self.passages: list[Passage] = []

    def add(self, text: str, title: str = "") -> str:
        """The id of this passage; new if it was not seen before."""
        key = (title, text)
        if key not in self._ids:
            self._ids[key] = f"{self._prefix}{len(self.passages):05d}"
            self.passages.append(Passage(self._ids[key], text, title))
        return self._ids[key]


def _dataset(name: str, corpus: _Corpus, questions: Iterable[_Question], **metadata: Any) -> TextDataset:
    listed: dict[str, _Question] = {}
    for question in questions:
        if question.id in listed:
            first = listed[question.id].place.short()
            raise question.place.error(f"question id {question.id!r} occurs twice, first at {first}")
        listed[question.id] = question
    facets = {one.id: one.facets for one in listed.values()}
    return TextDataset(
        name=name,
        passages=corpus.passages,
        queries={one.id: one.text for one in listed.values()},
        qrels={
            one.id: dict.fromkeys(one.pool, 0) | {id_: 1 for ids in one.facets.values() for id_ in ids}
            for one in listed.values()
        },
        facets=facets,
        kernels=single_passage_kernels(facets),
        answers={one.id: one.answers for one in listed.values()},
        pools={one.id: one.pool for one in listed.values()},
        metadata={"type": "real", **metadata},
    )


def _rgb_facets(record: Record, corpus: _Corpus) -> dict[str, list[str]]:
    """Passages by facet; a flat list of positives is one facet."""
    positive = record.list("positive")
    groups = positive if any(isinstance(part, list) for part in positive) else [positive]
    if not all(isinstance(group, list) for group in groups):
        raise record.place.error("'positive' mixes strings and lists: give strings, or one list per facet")
    by_facet = {
        str(number): unique(_rgb_passages(record, "positive", group, corpus))
        for number, group in enumerate(groups, start=1)
    }
    return {facet: ids for facet, ids in by_facet.items() if ids}


def _rgb_passages(record: Record, name: str, texts: list[Any], corpus: _Corpus) -> list[str]:
    for text in texts:
        if not isinstance(text, str):
            raise record.place.error(f"{name!r} must hold strings, got {type(text).__name__}")
    return [corpus.add(text) for text in texts if text.strip()]


def _hotpot_question(record: Record, corpus: _Corpus) -> _Question:
    by_title: dict[str, str] = {}
    for title, sentences in _hotpot_pairs(record, "context", "sentences"):
        if not isinstance(sentences, list):
            raise record.place.error("'context' must pair each title with a list of sentences")
        by_title[str(title)] = corpus.add("".join(map(str, sentences)).strip(), str(title))
    titles = [str(title) for title, _ in _hotpot_pairs(record, "supporting_facts", "sent_id")]
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
        unique(by_title.values()),
        _one_facet_each([by_title[title] for title in titles]),
    )


def _hotpot_pairs(record: Record, name: str, second: str) -> list[tuple[Any, Any]]:
    """Pairs given as pairs, or as two lists under ``title`` and ``second``."""
    value = record.fields.get(name)
    if isinstance(value, dict):
        titles, others = value.get("title"), value.get(second)
        if isinstance(titles, list) and isinstance(others, list):
            return list(zip(titles, others, strict=False))
    pairs = record.list(name)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise record.place.error(f"{name!r} must be a list of pairs of a title and its {second}")
    return [(first, other) for first, other in pairs]


def _musique_question(record: Record, corpus: _Corpus) -> _Question:
    ids: dict[int, str] = {}
    supporting: list[int] = []
    for place, paragraph in enumerate(record.list("paragraphs")):
        if not isinstance(paragraph, dict) or not isinstance(paragraph.get("paragraph_text"), str):
            raise record.place.error("each of 'paragraphs' must be an object with 'paragraph_text'")
        number = paragraph.get("idx", place)
        if not isinstance(number, int) or number in ids:
            raise record.place.error(f"'idx' of a paragraph must be a unique number, got {number!r}")
        ids[number] = corpus.add(paragraph["paragraph_text"], str(paragraph.get("title", "")))
        if paragraph.get("is_supporting"):
            supporting.append(number)
    if not supporting:
        raise record.place.error("no paragraph has 'is_supporting': the question has no kernel")
    # Supporting paragraphs in the order of the question's steps, then those that no step names.
    steps = record.list("question_decomposition", required=False)
    named = [step.get("paragraph_support_idx") for step in steps if isinstance(step, dict)]
    in_order = [number for number in named if number in supporting] + supporting
    return _Question(
        record.place,
        record.identifier("id"),
        record.text("question"),
        unique(flat_strings([record.fields.get("answer"), record.fields.get("answer_aliases")])),
        unique(ids.values()),
        _one_facet_each([ids[number] for number in in_order]),
    )


def _one_facet_each(passages: list[str]) -> dict[str, list[str]]:
    return {str(hop): [passage] for hop, passage in enumerate(unique(passages), start=1)}


def _stem(file: Path) -> str:
    return file.name.removesuffix(".gz").rpartition(".")[0]
