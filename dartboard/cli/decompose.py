"""``--decompose``: the configured language model splits a question into parts before it is searched for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dartboard.answering import AnswerModel
    from dartboard.search_options import SearchOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class DecomposeFlags:
    """Whether a language model splits the question into parts that are searched for together."""

    decompose: Annotated[
        bool,
        typer.Option(
            "--decompose",
            help="Let the language model (answer_model) split the question into parts, as --also has them.",
        ),
    ] = False
    parts: Annotated[
        int, typer.Option("--parts", metavar="N", help="At most so many parts.", min=1, max=8)
    ] = 4

    def options(
        self, question: str, options: "SearchOptions", model: "AnswerModel", *, show: bool
    ) -> "SearchOptions":
        """The options with the parts, which are shown on stderr; a model that gives none is a warning."""
        if not self.decompose:
            return options
        from rich.text import Text

        from dartboard.answering import decomposed
        from dartboard.cli.console import messages, warn

        console = messages()
        with console.status(Text(f"Asking {model.name} for the parts of the question")):
            found, problem = decomposed(model, question, options, self.parts)
        parts = found.also[len(options.also) :]
        if problem:
            warn(f"{problem}; searching for the question alone")
        elif show:
            listed = [f"  {number}. {part}" for number, part in enumerate(parts, start=1)]
            head = "Sub-questions:" if parts else "The question has one part only."
            console.print(Text("\n".join([head, *listed])), soft_wrap=True)
        return found
