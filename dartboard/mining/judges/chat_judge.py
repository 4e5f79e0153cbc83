"""A chat model as a judge: ask, read, and believe a YES only with its evidence."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Self, Unpack, get_args

from dartboard.datasets.mined import Label
from dartboard.embeddings.by_name import GEMINI_URL, OPENAI_URL
from dartboard.llm.call_limits import current_limiter
from dartboard.llm.chat import ChatOptions, CompletionModel
from dartboard.llm.gemini import DEFAULT_MODEL, GeminiChat
from dartboard.llm.journal import JournaledChat
from dartboard.llm.openai import OpenAIChat
from dartboard.llm.reply_parser import json_objects, without_thoughts
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.answer_judge import facets_of
from dartboard.mining.judges.base import Verdict
from dartboard.mining.judges.prompts import DEFAULT_PROMPT, UNFENCED, VERSIONS, write_prompt
from dartboard.mining.judges.words import check_quote, first_sentence

_LABELS: tuple[Label, ...] = get_args(Label)
_FIRST_WORD = re.compile(r"[^\w]*(\w+)")
_LABEL = re.compile(rf"\b({'|'.join(_LABELS)})\b")
_HEADING = re.compile(r"[\s*_:.,>–-]*(?:(?:evidence|quote|missing|lines?|answer)\s*:\s*)?", re.IGNORECASE)
_QUOTED = re.compile('["“«]([^"”»]{8,})["”»]')
_LONGEST = 500


class ChatJudge:
    """Asks a chat model with a versioned prompt; an answer that cannot be read is asked for once more.

    Where none can be read then, or the endpoint refuses, the verdict is UNSURE and not ``answered``; too many
    of these in a row end a run (:meth:`dartboard.llm.call_limits.CallLimiter.record`).

    Args:
        chat: the model.
        prompt_version: one of :data:`dartboard.mining.judges.prompts.VERSIONS`.

    Raises:
        ConfigError: no prompt has this version.
    """

    def __init__(self, chat: CompletionModel, *, prompt_version: str = DEFAULT_PROMPT) -> None:
        if prompt_version not in VERSIONS:
            write_prompt(prompt_version, Case(id="?", question="?"), [])
        self.chat = chat
        self.name = chat.full_name
        self.prompt_version = prompt_version

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """The model's verdict, if its evidence holds."""
        prompt = write_prompt(self.prompt_version, case, contexts)
        trouble, limiter = "", current_limiter()
        for again in range(2):
            answer = self.chat.complete(prompt.text, system=prompt.system, attempt=2 * attempt + again)
            said = None if answer.trouble else read_answer(answer.text)
            if said is not None:
                limiter.record(self.name, case.id)
                return self._signed(self._believed(said, case, contexts))
            trouble = answer.trouble or f"the answer cannot be read: {answer.text[:100]!r}"
            if answer.trouble:
                break
        limiter.record(self.name, case.id, trouble)
        return self._signed(Verdict(label="UNSURE", reason=trouble, answered=False))

    def expected(self, case: Case, contexts: Sequence[Document], attempt: int = 0) -> Usage:
        """What one verdict will probably take; nothing where the answer is in the journal."""
        prompt = write_prompt(self.prompt_version, case, contexts)
        if isinstance(self.chat, JournaledChat):
            if self.chat.known(prompt.text, system=prompt.system, attempt=2 * attempt):
                return Usage()
            return self.chat.chat.expected(prompt.text, prompt.system)
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

    def _signed(self, verdict: Verdict) -> Verdict:
        reason = verdict.reason[:_LONGEST]
        return replace(verdict, reason=reason, judge=self.name, prompt_version=self.prompt_version)

    def _believed(self, said: Verdict, case: Case, contexts: Sequence[Document]) -> Verdict:
        """What a model said, or UNSURE where it said YES and its evidence does not hold."""
        if said.label != "YES":
            return replace(said, evidence="")
        if not contexts:
            return _known(said, case)
        texts = [context.text for context in contexts]
        facets = facets_of(case)
        quote = check_quote(said.evidence, texts, question=case.question, answers=facets)
        if not quote.trouble:
            return replace(said, evidence=quote.text)
        # A prompt that asks for no quote may get an explanation, which is no invented evidence.
        if self.prompt_version == UNFENCED and not _QUOTED.search(said.evidence):
            return replace(said, evidence="", reason=said.evidence or "no quote was asked for")
        return Verdict(label="UNSURE", reason=f"{quote.trouble}; it said YES")


def read_answer(text: str) -> Verdict | None:
    """The verdict in a model's reply, not believed yet; None where there is none.

    The first word counts if it is YES, NO or UNSURE, else the first of these in capitals, or the label of a
    JSON object. After YES the rest is the quote, after NO or UNSURE what is missing.
    """
    reply = _clean(without_thoughts(text)).strip()
    for plain in json_objects(reply):
        said = str(plain.get("label") or plain.get("answer") or plain.get("verdict")).strip().upper()
        if said in _LABELS:
            parts = {
                key: _clean(str(plain.get(key) or "")).strip() for key in ("evidence", "missing", "reason")
            }
            return Verdict(label=said, **parts)  # type: ignore[arg-type]  # one of the three
    if reply.lstrip("`json \n").startswith("{"):
        return None  # half an object
    found = _FIRST_WORD.match(reply)
    if found is None or found[1].upper() not in _LABELS:
        found = _LABEL.search(reply)
    if found is None:
        return None
    label, rest = found[1].upper(), reply[found.end() :].strip()
    rest = rest[_HEADING.match(rest).end() :].strip()  # type: ignore[union-attr]  # it matches nothing, too
    if label == "YES":
        return Verdict(label="YES", evidence=rest)
    return Verdict(label="NO" if label == "NO" else "UNSURE", missing=rest[:_LONGEST], reason=rest)


def _known(said: Verdict, case: Case) -> Verdict:
    """Without contexts the evidence is the answer itself, and counts if it is the known one."""
    facets = facets_of(case)
    if not all(first_sentence(facet, [said.evidence]) for facet in facets):
        reason = f"sure of an answer that is not the known one: {said.evidence}"
        return Verdict(label="UNSURE", reason=reason)
    known = "the known answer" if facets else "its word is all there is: no answer is known"
    return replace(said, reason=known)


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
