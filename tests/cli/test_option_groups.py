"""Groups of options: typer is shown each option, the command gets the group."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from dartboard.cli.common_options import spelled_out


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
