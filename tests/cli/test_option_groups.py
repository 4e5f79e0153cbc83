"""Groups of options: typer is shown each option, the command gets the group."""

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from dartboard.cli.common_options import SearchFlags, naming_flags, spelled_out
from dartboard.engine import load_settings
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.search_options import SearchOptions


@dataclass(frozen=True, kw_only=True)
class Size:
    """Two options; one of them is required."""

    width: Annotated[int, typer.Option("--width", "-w", min=1, help="How wide.")]
    height: Annotated[int, typer.Option(help="How high.")] = 3

    def __post_init__(self):
        if self.height > self.width:
            raise typer.BadParameter("higher than wide")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    folder: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to.")] = None


@pytest.fixture
def seen():
    return []


@pytest.fixture
def run(seen):
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @spelled_out
    def paint(
        name: Annotated[str, typer.Argument(help="What to paint.")],
        *,
        size: Size,
        loud: Annotated[bool, typer.Option("--loud", help="Say so.")] = False,
        target: Target,
    ) -> None:
        """Paint a picture."""
        seen.append((name, size, loud, target))

    return lambda *arguments: CliRunner().invoke(app, arguments)


def test_a_command_gets_its_groups(run, seen):
    assert run("sea", "-w", "5", "--loud", "--folder", "out").exit_code == 0
    assert seen == [("sea", Size(width=5, height=3), True, Target(folder=Path("out")))]
    assert run("sea", "--width", "4", "--height", "2").exit_code == 0
    assert seen[1] == ("sea", Size(width=4, height=2), False, Target())


def test_help_lists_options_where_the_groups_stand(run):
    told = run("--help").output
    assert "Paint a picture." in told and "DIR" in told
    places = [told.index(option) for option in ("--width", "--height", "--loud", "--folder")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (("sea",), "--width"),
        (("sea", "-w", "0"), "--width"),
        (("sea", "-w", "1"), "higher than wide"),
        (("sea", "-w", "5", "--size", "2"), "--size"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_runs(run, seen, given, complaint):
    found = run(*given)
    assert found.exit_code == 2 and complaint in found.output and not seen


def test_flags_of_a_search_are_its_options():
    names = {field.name for field in fields(SearchFlags)}
    assert names <= {field.name for field in fields(SearchOptions)}
    assert all(field.default is None for field in fields(SearchFlags))
    flags = SearchFlags(token_budget=300, max_per_source=2, where="year >= 2020", sigma="0.2", triage_k=40)
    assert flags.options(load_settings(flags.settings)) == SearchOptions(
        token_budget=300, max_per_source=2, where="year >= 2020", sigma=0.2, triage_k=40
    )
    assert SearchFlags().options(load_settings({})) == SearchOptions(k=5)


def test_a_wrong_option_is_called_by_its_flag():
    flags = SearchFlags(max_per_source=2.5)
    with pytest.raises(typer.BadParameter, match=r"^--max-per-source must be"):
        flags.options(load_settings({}))


def test_every_option_has_its_flag():
    flags = SearchFlags(
        must_include=["a"], exclude=["b"], min_similarity=0.2, min_gain_share=0.1, source_field="author"
    )
    assert flags.options(load_settings({})) == SearchOptions(
        k=5, must_include=["a"], exclude=["b"], min_similarity=0.2, min_gain_share=0.1, source_field="author"
    )


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {"weights": "2,1"},
            "--weights say how much the query and each question in --also count",
        ),
        ({"k": 1, "must_include": ["a", "b"]}, "--must-include has 2 candidates, more than --k = 1"),
        ({"must_include": ["k"], "seen": ["k"]}, "chunk 'k' is both in --must-include and in --seen"),
        (
            {"token_budget": 9, "offset": 5},
            "--offset counts picks and goes with --k, not with --tokens",
        ),
    ],
)
def test_options_that_contradict_each_other_are_called_by_their_flags(given, complaint):
    flags = SearchFlags(**given)
    with pytest.raises((typer.BadParameter, ConfigError), match=re.escape(complaint)):
        flags.options(load_settings(flags.settings))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no chunk 'seen' in the collection: check seen", "no chunk 'seen' in the collection: check --seen"),
        (
            "give more candidates (triage_k) from the first page on",
            "give more candidates (--triage) from the f",
        ),
        ("max_per_source and max_per['a']", "--max-per-source and --max-per['a']"),
        ("words such as also, where and method stay", "words such as also, where and method stay"),
    ],
)
def test_what_a_search_says_is_told_with_flags(said, shown):
    with pytest.raises(InvalidInputError, match=re.escape(shown)), naming_flags():
        raise InvalidInputError(said)
