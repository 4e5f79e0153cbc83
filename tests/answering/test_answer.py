"""From a question to an answer, over a real index and a real socket; and under faults on a schedule."""

from pathlib import Path

import pytest

from dartboard.answering import (
    Answer,
    AnswerError,
    AnswerStream,
    Passage,
    Piece,
    answer_model,
    ask,
    find_citations,
)
from dartboard.deadline import deadline
from dartboard.engine import Engine
from dartboard.errors import ConfigError, DeadlineError
from dartboard.llm.openai import OpenAIChat
from tests.llm.chat_server import (
    QUICK,
    ChatServer,
    ModelServer,
    Waiting,
    cut,
    gemini_events,
    openai_events,
    streamed,
)
from tests.mining.faulty_server import FaultyServer
from tests.models import WordBag

PASSAGES = [
    Passage(
        number=1,
        name="keys.md",
        text="Keys are rotated monthly.",
        chunk_id="k1",
        metadata={"source": "keys.md"},
    ),
    Passage(number=2, name="logs.md", text="Logs are kept for a week.", chunk_id="l1"),
]


class Told:
    """A model that says what it is told to."""

    name = "told:one"

    def __init__(self, *pieces):
        self.pieces = [piece if isinstance(piece, Piece) else Piece(text=piece) for piece in pieces]
        self.prompts = []

    def stream(self, text, *, system=""):
        self.prompts.append((system, text))
        yield from self.pieces


def answer(*pieces, passages=PASSAGES, question="When?") -> Answer:
    asking = AnswerStream(Told(*pieces), question, passages)
    assert "".join(asking) == asking.answer.text
    return asking.answer


def test_an_answer_has_everything_with_it():
    done = answer("Monthly [1], ", "and not [7].", Piece(finish="stop", input_tokens=50, output_tokens=9))
    assert done.text == "Monthly [1], and not [7]."
    assert [(one.number, one.chunk_id, one.start, one.end) for one in done.citations] == [(1, "k1", 8, 11)]
    assert [one.number for one in done.unknown] == [7]
    assert (done.cited, done.answered, done.finish_reason) == ((1,), True, "stop")
    assert (done.tokens.input, done.tokens.output, done.tokens.counted) == (50, 9, True)
    assert set(done.seconds) == {"first", "total"} and 0 <= done.seconds["first"] <= done.seconds["total"]
    plain = done.to_json()
    assert plain["passages"][0] == {
        "number": 1,
        "chunk_id": "k1",
        "text": "Keys are rotated monthly.",
        "metadata": {"source": "keys.md"},
    }
    assert plain["unknown_citations"] == [{"number": 7, "start": 21, "end": 24}]
    assert plain["tokens"] == {"input": 50, "output": 9, "counted": True}


def test_tokens_are_estimated_where_nobody_counts():
    done = answer("Monthly [1].")
    assert done.tokens.input > 100 and done.tokens.output == 3 and not done.tokens.counted


def test_what_steers_a_terminal_never_gets_out():
    done = answer("\x1b[2J\x1b]0;ow", "ned\x07Mon\x1b", "[31mthly\x9b1m [1]\u202e.", "\x1b[")
    assert done.text == "Monthly [1]."
    assert done.citations == find_citations(done.text, PASSAGES).known


def test_thoughts_stay_inside():
    assert answer("<think>let me", " see [2]</think>", "\nMonthly [1].").text == "Monthly [1]."


def test_no_answer_is_known_as_such():
    assert not answer("The passages do not answer this question. They speak of logs [2].").answered
    assert answer("No, monthly [1].").answered


def test_nobody_is_asked_about_nothing():
    model = Told("x")
    asking = AnswerStream(model, "When?", [])
    assert list(asking) == [] and model.prompts == []
    done = asking.answer
    assert (done.text, done.answered, done.finish_reason, done.tokens.input) == ("", False, "no_passages", 0)


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (["", " \n"], "stop"),
        ([Piece(finish="content_filter")], "content_filter"),
        ([Piece(finish="length")], "before the answer began: allow more with answer_tokens"),
        (["<think>for ever", Piece(finish="length")], "answer_tokens"),
    ],
)
def test_empty_answers_are_errors(pieces, said):
    with pytest.raises(AnswerError, match="wrote nothing") as caught:
        list(AnswerStream(Told(*pieces), "When?", PASSAGES))
    assert caught.value.kind == "empty" and said in str(caught.value)


def test_answers_without_end_are_errors():
    with pytest.raises(AnswerError, match="does not stop"):
        list(AnswerStream(Told(*["x" * 600_000] * 2), "When?", PASSAGES))


def test_an_answer_that_is_left_is_what_came():
    waiting = Waiting("Monthly ", "[1] ")
    with ChatServer(waiting) as server:
        asking = AnswerStream(OpenAIChat("m", server.url, patience=QUICK), "When?", PASSAGES)
        pieces = iter(asking)
        while asking.answer.text != "Monthly [1] ":
            next(pieces)
        pieces.close()
        assert waiting.left.wait(60)
        waiting.go.set()
    assert (asking.answer.finish_reason, asking.answer.cited) == ("interrupted", (1,))


def test_what_came_before_a_cut_is_kept():
    with ChatServer(cut(openai_events("Monthly [1] ", finish=None, done=False, usage=None))) as server:
        asking = AnswerStream(OpenAIChat("m", server.url, patience=QUICK), "When?", PASSAGES)
        with pytest.raises(AnswerError, match="broke off"):
            list(asking)
    assert (asking.answer.text, asking.answer.finish_reason) == ("Monthly [1] ", "interrupted")


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ask")
    (folder / "keys.md").write_text(
        "# Keys\n\nKeys are rotated on the first of the month by the platform team.\n"
    )
    (folder / "logs.md").write_text("# Logs\n\nLogs of requests are kept for one week and then deleted.\n")
    from dartboard.engine import index_paths

    with Engine.open("memory://", model=WordBag(), retriever="dense") as engine:
        index_paths(engine, [folder])
        yield engine


def test_search_prompt_answer(engine):
    with ModelServer() as server:
        asking = ask(
            engine, "When are keys rotated?", answer_model(f"openai:m@{server.url}", patience=QUICK), k=2
        )
        text = "".join(asking)
        prompt = server.bodies[0]["messages"][-1]["content"]
    done = asking.answer
    assert "rotated on the first" in text and "[1]" in text
    assert done.cited == (1, 2) and not done.unknown
    assert all(passage.text in prompt for passage in done.passages)
    assert {Path(one.metadata["source"]).name for one in done.passages} == {"keys.md", "logs.md"}
    assert set(done.seconds) == {"search", "first", "total"}
    assert (done.model, done.prompt_version, done.tokens.counted) == ("openai:m", "cited-1", True)


def test_gemini_answers_too(engine, monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    with ModelServer() as server:
        asking = ask(
            engine, "When are keys rotated?", answer_model(f"gemini:g@{server.url}", patience=QUICK), k=1
        )
        assert "".join(asking).endswith(" [1].")
        assert server.requests[0].headers["x-goog-api-key"] == "key"
    assert (asking.answer.model, asking.answer.tokens.output) == ("gemini:g", 42)


def test_a_deadline_holds_for_the_answer(engine):
    waiting = Waiting()
    with ChatServer(waiting) as server, pytest.raises(DeadlineError), deadline(1.0):  # timing: has to run out
        list(ask(engine, "When?", answer_model(f"openai:m@{server.url}"), k=1))
    waiting.go.set()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "set DARTBOARD_ANSWER_MODEL to openai:MODEL@URL"),
        ("  ", "dartboard.toml"),
        ("llama", "use openai:MODEL[@BASE_URL] or gemini:MODEL"),
        ("openai:", "use openai:MODEL"),
        ("openai:m@", "use openai:MODEL"),
        ("gemini:g@", "or gemini:MODEL[@BASE_URL]"),
        ("anthropic:m", "use openai:MODEL"),
        ("openai:m@localhost:11434", "must start with http"),
        ("openai:m@http://me:pw@host/v1", "must not hold a password"),
        ("openai:m", "set the variable OPENAI_API_KEY"),
        ("gemini:g", "set the variable GEMINI_API_KEY"),
    ],
)
def test_configuration_is_complained_of(spec, said, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(ConfigError) as caught:
        answer_model(spec)
    assert said in str(caught.value)


def test_names_without_addresses(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    assert answer_model("openai:gpt").name == "openai:gpt"
    assert answer_model(" gemini:models/g ").name == "gemini:models/g"
    assert answer_model("openai:m@http://127.0.0.1:9/v1", max_output_tokens=7).max_output_tokens == 7


def test_faults_on_a_schedule():
    """Every question gets its answer or an error that says what happened; no answer is wrong or mixed up."""
    done = errors = 0
    with FaultyServer(seed=3, faults=0.5) as server:
        model = OpenAIChat("m", server.url, patience=QUICK)
        for door in range(40):
            passage = Passage(number=1, text=f"The code of door {door} is {door * 7919 % 9973:04d}.")
            asking = AnswerStream(model, f"What is the code of door {door}?", [passage])
            try:
                text = "".join(asking)
            except AnswerError as error:
                errors += 1
                assert error.kind in ("limited", "failed", "broken", "cut"), error
                continue
            done += 1
            whole = server.content(server.bodies[-1]["messages"][-1]["content"])
            assert passage.text in whole and whole.startswith(text)
    assert done >= 20 and done + errors == 40
    assert server.happened["limit"] and server.happened["cut"] and server.happened["drop"]


def test_gemini_streams_can_be_cut():
    with ChatServer(streamed(gemini_events("One ", finish=None))) as server:
        from dartboard.llm.gemini import GeminiChat

        asking = AnswerStream(GeminiChat("g", "key", base_url=server.url, patience=QUICK), "When?", PASSAGES)
        with pytest.raises(AnswerError, match="broke off"):
            list(asking)
