"""``--decompose``: the configured language model splits a question into parts before it is searched for."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dartboard.answering import AnswerModel
    from dartboard.engine.settings import Settings
    from dartboard.search_options import SearchOptions

_search = partial(typer.Option, rich_help_panel="Search")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecomposeFlags:
    """Whether a language model splits the question into parts that are searched for together."""

    decompose: Annotated[
        bool,
        _search(
            "--decompose",
            help="Let the language model (answer_model) split the question into parts, as --also has them.",
        ),
    ] = False
    parts: Annotated[
        int,
        _search("--parts", metavar="N", help="At most so many parts.", min=1, max=8),
    ] = 4

    def options(
        self, question: str, options: "SearchOptions", settings: "Settings", *, show: bool
    ) -> "SearchOptions":
        """The options with the parts, which are shown on stderr; a model that gives none is a warning."""
        if not self.decompose:
            return options
        from dartboard.answering import decomposed
        from dartboard.cli.console import messages, say, warn

        writer = answer_writer(settings)
        with messages().status(f"Asking {writer.name} for the parts of the question"):
            found, problem = decomposed(writer, question, options, self.parts)
        parts = found.also[len(options.also) :]
        if problem:
            warn(f"{problem}; searching for the question alone")
        elif show:
            say("Sub-questions:" if parts else "The question has one part only.")
            for number, part in enumerate(parts, start=1):
                say(f"  {number}. {part}")
        return found


def answer_writer(settings: "Settings") -> "AnswerModel":
    """The language model of the settings; an error where there is none."""
    from dartboard.answering import answer_model

    return answer_model(
        settings.answer_model, max_output_tokens=settings.answer_tokens, timeout=settings.answer_timeout
    )
