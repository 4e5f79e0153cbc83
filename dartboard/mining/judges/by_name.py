"""Judges by name, as a command line writes them.

answers                    known answer strings, offline
check                      the case's executable check, offline
gemini[:MODEL]             Google's endpoint; GEMINI_API_KEY
openai:MODEL[@BASE_URL]    an OpenAI-compatible endpoint; OPENAI_API_KEY where it wants one
ensemble:A,B,C             a majority of the judges named
"""

from dartboard.embeddings.remote import PATIENCE, Patience
from dartboard.errors import ConfigError
from dartboard.mining.budget import Prices
from dartboard.mining.prompts import DEFAULT_PROMPT
from dartboard.mining.verdicts import Judge

FORMS = "answers, check, gemini[:MODEL], openai:MODEL[@BASE_URL], ensemble:A,B,…"


def judge_by_name(
    spec: str,
    *,
    prompt_version: str = DEFAULT_PROMPT,
    prices: Prices | None = None,
    patience: Patience = PATIENCE,
) -> Judge:
    """The judge; ``prices`` hold for every chat model in it, where given."""
    kind, colon, rest = spec.strip().partition(":")
    if kind == "answers" and not colon:
        from dartboard.mining.judges.answers import AnswerJudge

        return AnswerJudge()
    if kind == "check" and not colon:
        from dartboard.mining.judges.checks import CheckJudge

        return CheckJudge()
    if kind == "gemini" and bool(colon) == bool(rest):
        from dartboard.mining.judges.gemini import DEFAULT_MODEL, GeminiJudge

        model = rest or DEFAULT_MODEL
        return GeminiJudge(model, prompt_version=prompt_version, prices=prices, patience=patience)
    if kind == "openai" and rest and not rest.startswith("@"):
        from dartboard.mining.judges.openai import DEFAULT_URL, OpenAIJudge

        model, _, url = rest.partition("@")
        return OpenAIJudge(
            model, url or DEFAULT_URL, prompt_version=prompt_version, prices=prices, patience=patience
        )
    if kind == "ensemble" and rest:
        return _ensemble(rest, prompt_version, prices, patience)
    raise ConfigError(f"unknown judge {spec!r}: use {FORMS}")


def _ensemble(rest: str, prompt_version: str, prices: Prices | None, patience: Patience) -> Judge:
    from dartboard.mining.judges.ensemble import EnsembleJudge

    members = [member.strip() for member in rest.split(",")]
    if any(member.startswith("ensemble") for member in members):
        raise ConfigError("an ensemble cannot be a member of another one: name its members")
    return EnsembleJudge(
        [
            judge_by_name(member, prompt_version=prompt_version, prices=prices, patience=patience)
            for member in members
        ]
    )
