"""The offline judge: strings that mean the same are the same, and others are not."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.answer_judge import AnswerJudge, find, widened
from dartboard.mining.judges.answer_tokens import ordinal, spelled
from dartboard.mining.judges.text_folding import fold

SAME = [
    ("March 5, 2021", "It premiered on 5 March 2021 in Rome."),
    ("March 5, 2021", "released 2021-03-05"),
    ("March 5, 2021", "Released: 03/05/2021."),
    ("March 5, 2021", "the 5th of March, 2021"),
    ("2021-03-05", "Mar. 5, 2021"),
    ("March 5", "On Mar 5, 2021 it began"),
    ("March 2021", "in Mar. 2021"),
    ("March 2021", "on 5 March 2021"),
    ("2021", "on 5 March 2021"),
    ("February 20", "It runs from 4 to 20 February 2022."),
    ("February 4", "February 4-20, 2022"),
    ("May 11 and May 12", "May 11-12"),
    ("April 18-19", "18th-19th April"),
    ("Sept. 9", "September 9th"),
    ("1,000", "1000 people"),
    ("1000", "one thousand people"),
    ("one hundred and five", "105"),
    ("2.5 million", "2,500,000"),
    ("$1.65 billion", "for 1.65 billion dollars"),
    ("$1599", "at US$1,599 a piece"),
    ("USD 19.99", "only USD19.99 per year"),
    ("$434.5 million", "a total of $434.5M"),
    ("3.7%", "3.7 percent"),
    ("3.7 percent", "3.70 per cent"),
    ("5 km", "a 5-kilometre run"),
    ("twenty-first", "the 21st floor"),
    ("22", "placed 22nd"),
    ("The Power of the Dog", "won by Power of the Dog"),
    ("Iga Świątek", "Iga Swiatek won"),
    ("U.S. Open", "the US Open"),
    ("J.K. Rowling", "J. K. Rowling wrote it"),
    ("e-mail", "send an email"),
    ("email", "send an e-mail"),
    ("Guillermo del Toro's Pinocchio", "Guillermo del Toro’s PINOCCHIO"),
    ("Bettinelli-Olpin", "Bettinelli–Olpin directs"),
    ("C++", "written in C++ mostly"),
    ("max_llm_calls", "run_config.max_llm_calls = 5"),
    ("->", "def f() -> int"),
    ("-1", "temperature=-1"),
    ("vitamin A", "Vitamin A helps"),
    ("ﬁve", "5"),
    ("metres", "Its length is 2301 metres."),
    ("grams", "take 12 grams of it"),
    ("US dollars", "for 5 US Dollars"),
    ("dollars", "for 5 dollars"),
    ("0.5", "a dose of .5 mg"),
    (".5", "a dose of 0.5 mg"),
    ("0.50", "x=.5, y=2"),
    (".5mg", "a dose of 0.5mg"),
    ("-0.5", "from -.5 to 1"),
]
OTHER = [
    ("5", "a dose of .5 mg"),
    ("0.5", "v.5 of it"),
    ("0.5", "see 1.5"),
    ("first", "the twenty-first floor"),
    ("five", "twenty-five"),
    ("metres", "2301 kilometres"),
    ("March 5, 2021", "March 15, 2021"),
    ("March 5, 2021", "March 5, 2022"),
    ("March 5, 2021", "March 5"),
    ("March 5", "5 May; March"),
    ("1,000", "10,000"),
    ("1000", "1000.5"),
    ("105", "one hundred, five"),
    ("5 km", "5 miles"),
    ("5 km", "15 km"),
    ("$5", "5 euros"),
    ("5", "-5 degrees"),
    ("cat", "concatenate"),
    ("LSU", "LSUX"),
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


words = st.lists(st.from_regex(r"[a-z]{3,9}", fullmatch=True), min_size=1, max_size=4)


@given(words, st.text(max_size=40), st.text(max_size=40))
def test_an_answer_is_found_wherever_it_stands_apart(answer, before, after):
    text = f"{before} ; {' '.join(answer).upper()} ; {after}"
    if set(answer) & {"the", "and", "one", "two", "six", "ten"}:
        return
    span = find(" ".join(answer), text)
    assert span is not None
    assert 0 <= span[0] < span[1] <= len(text)


@given(st.text(max_size=200))
def test_folding_keeps_places(text):
    folded = fold(text)
    assert len(folded.places) == len(folded.text) + 1
    assert list(folded.places) == sorted(folded.places)


@given(st.integers(0, 999_999))
def test_spelled_numbers_are_read_back(number):
    assert spelled(in_words(number).replace("-", " ").split()) == (
        number,
        len(in_words(number).replace("-", " ").split()),
    )


def in_words(number: int) -> str:
    from dartboard.mining.judges.answer_tokens import _SMALL, _TENS

    if number < 20:
        return _SMALL[number]
    if number < 100:
        rest = f"-{_SMALL[number % 10]}" if number % 10 else ""
        return _TENS[number // 10 - 2] + rest
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = number % size
            joint = " and " if rest and rest < 100 else " "
            return f"{in_words(number // size)} {name}{joint if rest else ''}{in_words(rest) if rest else ''}"
    raise AssertionError


def test_ordinals():
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 111, 122)] == (
        ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "111th", "122nd"]
    )


def judge(texts, **known):
    contexts = [Document(f"d{at}", text) for at, text in enumerate(texts)]
    return AnswerJudge().judge(Case(id="q", question="Who directed it, and when?", **known), contexts)


def test_yes_quotes_the_sentence():
    verdict = judge(["It is a film. Frank Marshall directed it. It was liked."], answers=("frank marshall",))
    assert (verdict.label, verdict.evidence) == ("YES", "Frank Marshall directed it.")
    assert verdict.judge == "answers"


def test_every_facet_is_needed_from_any_context():
    facets = (("2 January 2022", "Jan 2"), ("Frank Marshall",))
    half = judge(["Premiered January 2, 2022."], facets=facets)
    assert (half.label, half.missing) == ("NO", "Frank Marshall")
    whole = judge(["Premiered January 2, 2022.", "Directed by Frank Marshall."], facets=facets)
    assert whole.label == "YES"
    assert whole.evidence == "Premiered January 2, 2022. … Directed by Frank Marshall."


def test_an_answer_is_not_put_together_from_two_contexts():
    assert judge(["by Frank", "Marshall said"], answers=("Frank Marshall",)).label == "NO"


def test_no_known_answer_is_unsure():
    assert judge(["text"]).label == "UNSURE"
    assert judge(["text"], answers=(" ",)).label == "UNSURE"
    assert "yes or no" in judge(["No, he said."], answers=("No.",)).reason


def test_without_contexts_it_looks_at_the_question():
    given_away = Case(id="q", question="Is Paris or Rome larger?", answers=("Paris",))
    assert AnswerJudge().judge(given_away, []).label == "YES"
    assert judge([], answers=("Frank Marshall",)).label == "NO"


def test_very_long_sentences_are_cut_at_words():
    text = "word " * 300 + "the answer stands here " + "more " * 300
    start = text.index("the answer")
    evidence = widened(text, start, start + 10)
    assert len(evidence) <= 400
    assert "the answer stands here" in evidence
    assert evidence in text
    assert set(evidence.split()) == {"word", "the", "answer", "stands", "here", "more"}


DATA = Path(os.environ.get("DARTBOARD_DATA", "../shared/data"))


@pytest.mark.skipif(not (DATA / "rgb_en_fact").is_dir(), reason="needs the RGB data")
def test_rgb_positives_and_negatives_are_told_apart():
    import json

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
    assert right / total >= 0.97
