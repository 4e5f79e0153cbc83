"""The bar of a preparation."""

import io

import pytest
import rich.console

from dartboard.datasets import progress_bar


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_for_terminals_only(monkeypatch, terminal):
    drawn = io.StringIO()
    real = rich.console.Console

    def console(**options):
        return real(file=drawn, force_terminal=terminal, width=80, highlight=options["highlight"])

    monkeypatch.setattr(rich.console, "Console", console)
    with progress_bar() as listen:
        listen("Embedding passages", 1, 4)
        listen("Embedding passages", 4, 4)
        listen("Cleaning passages", 1000, None)
    assert ("Embedding passages" in drawn.getvalue()) == terminal
    assert ("4/4" in drawn.getvalue()) == terminal
