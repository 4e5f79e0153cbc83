"""Judges by name, as a command line writes them.

answers                    known answer strings, offline
check                      the case's executable check, offline
check:JUDGE                the same; JUDGE is asked first, and decides where there is no check
gemini[:MODEL[@BASE_URL]]  Google's endpoint; GEMINI_API_KEY
openai:MODEL[@BASE_URL]    an OpenAI-compatible endpoint; OPENAI_API_KEY where it wants one
ensemble:A,B,C             a majority of the judges named
NAME[:ARGUMENT]            a plug-in's (:mod:`dartboard.plugins`)
"""

from functools import partial
from typing import Unpack

from dartboard.embeddings.by_name import endpoint_name
from dartboard.errors import ConfigError
from dartboard.llm.chat import ChatOptions
from dartboard.llm.gemini import DEFAULT_MODEL
from dartboard.llm.registry import chat_model
from dartboard.mining.corpora.base import Corpus
from dartboard.mining.judges.answer_judge import AnswerJudge
from dartboard.mining.judges.base import Judge
from dartboard.mining.judges.chat_judge import ChatJudge
from dartboard.mining.judges.check_judge import CheckJudge
from dartboard.mining.judges.ensemble import EnsembleJudge
from dartboard.mining.judges.partial_solution import PartialSolution
from dartboard.mining.judges.prompts import DEFAULT_PROMPT
from dartboard.plugins import find, names

FORMS = "answers, check[:JUDGE], gemini[:MODEL[@BASE_URL]], openai:MODEL[@BASE_URL], ensemble:A,B,…"
NAMES = frozenset({"answers", "check", "gemini", "openai", "ensemble"})
"""What our own judges are called, before any colon."""


def judge_by_name(
    spec: str,
    *,
    prompt_version: str = DEFAULT_PROMPT,
    corpus: Corpus | None = None,
    need_key: bool = True,
    **options: Unpack[ChatOptions],
) -> Judge:
    """The judge of that name.

    Args:
        spec: one of the forms above.
        prompt_version: what every chat model in it is asked with.
        corpus: by which a check resolves names.
        need_key: without it a missing key is no error: for judges that only estimate what they would cost.
        options: for every chat model in it, as in :class:`~dartboard.llm.chat.Chat`.

    Raises:
        ConfigError: no judge has this name, a key is missing, or an option cannot work.
    """
    again: partial[Judge] = partial(
        judge_by_name, prompt_version=prompt_version, corpus=corpus, need_key=need_key, **options
    )
    kind, colon, rest = spec.strip().partition(":")
    if kind not in NAMES and (plugin := find("judge", kind)) is not None:
        plugged: Judge = plugin.make(("name", "judge"), rest, **again.keywords)
        return plugged
    if kind == "answers" and not colon:
        return AnswerJudge()
    if kind == "check" and bool(colon) == bool(rest):
        return CheckJudge(again(rest) if rest else None, PartialSolution(corpus))
    named = endpoint_name(f"gemini:{DEFAULT_MODEL}" if spec.strip() == "gemini" else spec)
    if named is not None:
        return ChatJudge(chat_model(named, need_key=need_key, **options), prompt_version=prompt_version)
    members = [member.strip() for member in rest.split(",")]
    if any(member.startswith("ensemble") for member in members):
        raise ConfigError("an ensemble cannot be a member of another one: name its members", field="judge")
    if kind == "ensemble" and all(members):
        return EnsembleJudge([again(member) for member in members])
    raise ConfigError(f"unknown judge {spec!r}: use {', '.join((FORMS, *names('judge')))}", field="judge")
