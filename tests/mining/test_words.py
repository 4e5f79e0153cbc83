"""Known answers and quoted evidence, looked for by their words."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges import AnswerJudge
from dartboard.mining.judges.words import check_quote, find, stands_in, widened

SAME = [
    ("1,000", "1000 people"),
    ("1000", "some 1,000 people"),
    ("The Power of the Dog", "won by Power of the Dog"),
    ("Iga Świątek", "Iga Swiatek won"),
    ("Guillermo del Toro's Pinocchio", "Guillermo del Toro’s PINOCCHIO"),
    ("Bettinelli-Olpin", "Bettinelli–Olpin directs"),
    ("C++", "written in C++ mostly"),
    ("max_llm_calls", "run_config.max_llm_calls = 5"),
    ("->", "def f() -> int"),
    ("vitamin A", "Vitamin A helps"),
    ("metres", "Its length is 2301 metres."),
    ("Avon", "Avon's river"),
]
OTHER = [
    ("1,000", "10,000"),
    ("metres", "2301 kilometres"),
    ("March 5", "5 May; March"),
    ("5 km", "15 km"),
    ("cat", "concatenate"),
    ("run", "run_async"),
    ("vitamin A", "vitamin C"),
    ("New York", "new in York"),
    ("1.20.0", "1.20"),
    ("C", "C++ only"),
    ("May", "maybe"),
]


@pytest.mark.parametrize(("answer", "text"), SAME)
def test_found(answer, text):
    assert find(answer, text) is not None


@pytest.mark.parametrize(("answer", "text"), OTHER)
def test_not_found(answer, text):
    assert find(answer, text) is None


def test_the_span_is_of_the_original_text():
    text = "Ŵ… the ﬁlm was directed by Chloé  Zhao."
    start, end = find("Chloe Zhao", text)
    assert text[start:end] == "Chloé  Zhao"


words = st.lists(st.from_regex(r"[a-z]{4,9}", fullmatch=True), min_size=1, max_size=4)


@given(words, st.text(max_size=40), st.text(max_size=40))
def test_an_answer_is_found_wherever_it_stands_apart(answer, before, after):
    text = f"{before} ; {' '.join(answer).upper()} ; {after}"
    span = find(" ".join(answer), text)
    assert span is not None and 0 <= span[0] < span[1] <= len(text)


def judge(texts, **known):
    contexts = [Document(f"d{at}", text) for at, text in enumerate(texts)]
    return AnswerJudge().judge(Case(id="q", question="Who directed it, and when?", **known), contexts)


def test_yes_quotes_the_sentence():
    verdict = judge(["It is a film. Frank Marshall directed it. It was liked."], answers=("frank marshall",))
    assert (verdict.label, verdict.evidence) == ("YES", "Frank Marshall directed it.")
    assert verdict.judge == "answers"


def test_every_facet_is_needed_from_any_context():
    facets = (("2 January 2022", "January 2, 2022"), ("Frank Marshall",))
    half = judge(["Premiered January 2, 2022."], facets=facets)
    assert (half.label, half.missing) == ("NO", "Frank Marshall")
    whole = judge(["Premiered January 2, 2022.", "Directed by Frank Marshall."], facets=facets)
    assert whole.evidence == "Premiered January 2, 2022. … Directed by Frank Marshall."
    assert judge(["by Frank", "Marshall said"], answers=("Frank Marshall",)).label == "NO"


def test_what_strings_cannot_show_is_unsure():
    assert judge(["text"]).label == "UNSURE"
    assert "yes or no" in judge(["No, he said."], answers=("No.",)).reason


def test_without_contexts_it_looks_at_the_question():
    given_away = Case(id="q", question="Is Paris or Rome larger?", answers=("Paris",))
    assert AnswerJudge().judge(given_away, []).label == "YES"
    assert judge([], answers=("Frank Marshall",)).label == "NO"


def test_very_long_sentences_are_cut_at_words():
    text = "word " * 300 + "the answer stands here " + "more " * 300
    start = text.index("the answer")
    evidence = widened(text, start, start + 10)
    assert len(evidence) <= 410 and "the answer stands" in evidence and evidence in text
    assert set(evidence.split()) <= {"word", "the", "answer", "stands", "here", "more"}


NOTE = "The “Code” of door 7\n   is 4711 — keep it secret. It was Chloé who set it."
OTHER_NOTE = "Doors open inwards. LSU"
UNRELATED = "The service is fast.\n\nNobody listens to it.\n\nPort 9000 is closed. It was configured by hand."


@pytest.mark.parametrize(
    ("evidence", "kept"),
    [
        ("of door 7 is 4711", "of door 7\n   is 4711"),
        ('"code" of door 7', "Code” of door 7"),
        ("is 4711 - keep it secret.", "is 4711 — keep it secret"),
        ("Chloe who set it", "Chloé who set it"),
        ("code” of door ... keep it secret", "Code” of door … keep it secret"),
        ("Doors open inwards […] Chloé who set it", "Doors open inwards … Chloé who set it"),
        ("Doors open inwards.\nThis says it all.", "Doors open inwards"),
        ("- Doors open inwards\n- Chloé who set it", "Doors open inwards … Chloé who set it"),
    ],
)
def test_a_quote_is_kept_in_the_contexts_spelling(evidence, kept):
    quote = check_quote(evidence, [NOTE, OTHER_NOTE])
    assert (quote.text, quote.trouble) == (kept, "")
    assert stands_in(kept, [NOTE, OTHER_NOTE])


@pytest.mark.parametrize(
    ("evidence", "trouble"),
    [
        ("", "no evidence"),
        (" ... ", "no evidence"),
        ("the code of door 8 is 4711", "stands in no context"),
        ("code of door 7 ... is 4712", "stands in no context"),
        ("4711", "too short"),
        ("ode” of door 7 is", "stands in no context"),
        ("service ... listens ... 9000", "stands in no context"),
        ("service … configured", "stands in no context"),
    ],
)
def test_other_quotes_do_not_count(evidence, trouble):
    quote = check_quote(evidence, [NOTE, OTHER_NOTE, UNRELATED])
    assert quote.text == "" and trouble in quote.trouble


@pytest.mark.parametrize(
    ("evidence", "answers", "counts"),
    [
        ("12 grams", (), True),
        ("grams", (), False),
        ("12", (), False),
        ("12", (("twelve", "12"),), True),
        ("green", (("blue",), ("green",)), True),
        ("7 cups", (), False),
        ("2 grams", (), False),
    ],
)
def test_a_short_quote_counts_if_it_says_something(evidence, answers, counts):
    context = "Take 12 grams of green tea for 7 cups of water, and wait: it is 12 now."
    quote = check_quote(evidence, [context], question="How much tea do I take for 7 cups?", answers=answers)
    assert quote.text == (evidence if counts else "")
    assert check_quote("LSU", ["LSU."]).text == "LSU", "a whole context may be short"


def test_repeating_the_question_is_no_evidence():
    stuffed = "What is the code of door 7? This page is about the code of door 7."
    question = "What is the code of door 7?"
    assert "repeats words" in check_quote("the code of door 7", [stuffed], question=question).trouble
    assert check_quote("This page is about", [stuffed], question=question).trouble == ""
    assert "so long" in check_quote("word " * 2000, ["word " * 2000]).trouble


@given(st.text(min_size=1, max_size=120))
def test_what_is_quoted_stands_there(text):
    quote = check_quote(text, [f"before\n{text}\nafter"])
    assert bool(quote.text) != bool(quote.trouble)
    assert all(part in f"before\n{text}\nafter" for part in quote.text.split(" … "))


DATA = Path(os.environ.get("DARTBOARD_DATA", "../shared/data"))


@pytest.mark.skipif(not (DATA / "rgb_en_fact").is_dir(), reason="needs the RGB data")
def test_rgb_positives_and_negatives_are_told_apart():
    def rows(name):
        return [json.loads(line) for line in (DATA / "rgb_en_fact" / name).read_text().splitlines()]

    texts = {row["_id"]: row["text"] for row in rows("corpus.jsonl")}
    pools = {row["_id"]: row for row in rows("pools.jsonl")}
    right = total = 0
    for row in rows("queries.jsonl")[:40]:
        answers = row["metadata"]["answers"]
        facets = tuple(tuple(one) if isinstance(one, list) else (one,) for one in answers)
        case = Case(id=row["_id"], question=row["text"], facets=facets)
        for kind, expected in (("positive", "YES"), ("negative", "NO")):
            for doc in pools[row["_id"]][kind]:
                total += 1
                right += AnswerJudge().judge(case, [Document(doc, texts[doc])]).label == expected
    assert right / total >= 0.98
