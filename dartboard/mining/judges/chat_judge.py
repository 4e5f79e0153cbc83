"""A chat model as a judge: ask, read, and believe a YES only with its evidence."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, Unpack, get_args

from dartboard.embeddings.by_name import GEMINI_URL, OPENAI_URL
from dartboard.llm.call_limits import current_limiter
from dartboard.llm.chat import Chat, ChatOptions
from dartboard.llm.gemini import DEFAULT_MODEL, GeminiChat
from dartboard.llm.openai import OpenAIChat
from dartboard.llm.reply_parser import json_objects
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.answer_judge import facets_of, first_match
from dartboard.mining.judges.base import Label, Verdict
from dartboard.mining.judges.evidence import check_quote
from dartboard.mining.judges.prompts import DEFAULT_PROMPT, VERSIONS, write_prompt

_PARTS = ("evidence", "missing", "reason")
_LONGEST = {"missing": 300, "reason": 500}


class ChatJudge:
    """Asks a chat model with a versioned prompt; an answer that cannot be read is asked for once more.

    Where none can be read then, or the endpoint refuses, the verdict is UNSURE and not ``answered``; too many
    of these in a row end a run (see :mod:`dartboard.llm.circuit_breaker`).

    Args:
        chat: the model.
        prompt_version: one of :data:`dartboard.mining.judges.prompts.VERSIONS`.

    Raises:
        ConfigError: no prompt has this version.
    """

    def __init__(self, chat: Chat, *, prompt_version: str = DEFAULT_PROMPT) -> None:
        if prompt_version not in VERSIONS:
            write_prompt(prompt_version, Case(id="?", question="?"), [])
        self.chat = chat
        self.name = chat.full_name
        self.prompt_version = prompt_version

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """The model's verdict, if its evidence holds."""
        prompt = write_prompt(self.prompt_version, case, contexts)
        usage, trouble, breaker = Usage(), "", current_limiter().circuit_breaker
        for again in range(2):
            answer = self.chat.complete(
                prompt.text, system=prompt.system, schema=prompt.schema, attempt=2 * attempt + again
            )
            usage = usage + answer.usage
            said = read_answer(answer.text)
            if said is not None:
                breaker.record(self.name, case.id)
                return self._signed(_believed(said, case, contexts), usage)
            trouble = answer.trouble or f"the answer cannot be read: {answer.text[:100]!r}"
            if not answer.text or answer.trouble:
                break
        breaker.record(self.name, case.id, trouble)
        return self._signed(Verdict(label="UNSURE", reason=trouble, answered=False), usage)

    def looks_at(self, case: Case, contexts: Sequence[Document]) -> Any:
        """The choices; and without contexts the known answers, which the model's own are compared with."""
        known = [] if contexts else [list(facet) for facet in facets_of(case)]
        return [list(case.choices), known]

    def expected(self, case: Case, contexts: Sequence[Document]) -> Usage:
        """What one verdict will probably cost."""
        prompt = write_prompt(self.prompt_version, case, contexts)
        return self.chat.expected(prompt.text, prompt.system)

    def close(self) -> None:
        """Close the connections."""
        self.chat.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ChatJudge({self.name!r}, prompt_version={self.prompt_version!r})"

    def _signed(self, verdict: Verdict, usage: Usage) -> Verdict:
        return replace(
            verdict,
            reason=verdict.reason[: _LONGEST["reason"]],
            judge=self.name,
            prompt_version=self.prompt_version,
            usage=usage,
        )


def _believed(said: Verdict, case: Case, contexts: Sequence[Document]) -> Verdict:
    """What a model said, or UNSURE where it said YES and its evidence does not hold."""
    if said.label != "YES":
        return replace(said, evidence="")
    facets = facets_of(case)
    if contexts:
        quote = check_quote(said.evidence, contexts, question=case.question, answers=facets)
        if quote.trouble:
            return Verdict(label="UNSURE", reason=f"{quote.trouble}; it said YES: {said.reason}")
        return Verdict(label="YES", evidence=quote.text, reason=said.reason)
    # Without contexts the evidence is the answer itself, and counts if it is the known one.
    if not all(first_match(facet, [said.evidence]) for facet in facets):
        reason = f"sure of an answer that is not the known one: {said.evidence}"
        return Verdict(label="UNSURE", reason=reason)
    known = "the known answer" if facets else "its word is all there is: no answer is known"
    return Verdict(label="YES", evidence=said.evidence, reason=f"{known}; {said.reason}")


def read_answer(text: str) -> Verdict | None:
    """The verdict in a model's reply, not believed yet; None where no JSON object of the reply is one."""
    for found in json_objects(text):
        label = found.get("label")
        label = label.strip().upper() if isinstance(label, str) else ""
        parts = {key: found.get(key) or "" for key in _PARTS}
        if label in get_args(Label) and all(isinstance(part, str) for part in parts.values()):
            kept = {key: _clean(part).strip()[: _LONGEST.get(key)] for key, part in parts.items()}
            return Verdict(label=label, **kept)  # type: ignore[arg-type]  # one of the three
    return None


def _clean(text: str) -> str:
    """Without lone surrogates, which no file can hold, and control characters."""
    sound = text.encode("utf-8", "replace").decode()
    return "".join(character for character in sound if character.isprintable() or character in "\n\t")


class OpenAIJudge(ChatJudge):
    """A judge at an OpenAI-compatible endpoint: a :class:`ChatJudge` over :class:`~dartboard.llm.OpenAIChat`,
    whose arguments it takes."""

    def __init__(
        self,
        model: str,
        base_url: str = OPENAI_URL,
        api_key: str | None = None,
        *,
        prompt_version: str = DEFAULT_PROMPT,
        **options: Unpack[ChatOptions],
    ) -> None:
        super().__init__(OpenAIChat(model, base_url, api_key, **options), prompt_version=prompt_version)


class GeminiJudge(ChatJudge):
    """A judge at Google's endpoint, or at one that speaks like it: a :class:`ChatJudge` over
    :class:`~dartboard.llm.GeminiChat`, whose arguments it takes."""

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        api_key: str | None = None,
        *,
        base_url: str = GEMINI_URL,
        need_key: bool = True,
        prompt_version: str = DEFAULT_PROMPT,
        **options: Unpack[ChatOptions],
    ) -> None:
        chat = GeminiChat(model, api_key, base_url=base_url, need_key=need_key, **options)
        super().__init__(chat, prompt_version=prompt_version)
