"""``--ray``: the machines that a command lets work, joined before anything is written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dartboard.cli.common_options import opened

if TYPE_CHECKING:
    from dartboard.cluster import Cluster
    from dartboard.engine import Configured
    from dartboard.engine.chunk_writer import Encoder
    from dartboard.evaluation.runner import RemoteRunner

RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Let a Ray cluster do the work: auto, local, HOST:PORT or ray://HOST:PORT; by default off, or "
        "what DARTBOARD_RAY says.",
    ),
]


@contextmanager
def encoding_elsewhere(found: "Configured", *, trust: bool = False) -> "Iterator[Encoder | None]":
    """Machines that encode, all of them examined; None where the settings ask for none."""
    with _joined(found.settings.ray) as cluster:
        if cluster is None:
            yield None
            return
        from dartboard.cli.console import messages
        from dartboard.cluster import ClusterEncoder, recipe_of

        with messages().status("Looking at the machines of the cluster"):
            encoder = ClusterEncoder(cluster, recipe_of(_model_name(found, trust)))
        _say(len(encoder.machines), encoder.slots, "list", "of passages")
        yield encoder


@contextmanager
def answering_elsewhere(address: str, systems: list[str]) -> "Iterator[RemoteRunner | None]":
    """Machines that answer questions, all of them examined; None where none are asked for."""
    with _joined(address) as cluster:
        if cluster is None:
            yield None
            return
        from dartboard.cli.console import messages
        from dartboard.cluster import Recipe, recipe_of
        from dartboard.evaluation.distributed import ClusterRunner
        from dartboard.evaluation.registry import reads_texts

        with messages().status("Looking at the machines of the cluster"):
            shared = ClusterRunner(cluster, recipe_of("default") if reads_texts(systems) else Recipe())
        _say(len(shared.machines), shared.slots, "group", "of questions")
        yield shared


@contextmanager
def _joined(address: str) -> "Iterator[Cluster | None]":
    from dartboard.cluster import OFF, connect

    if address == OFF:
        yield None
        return
    with connect(address) as cluster:
        yield cluster


def _model_name(found: "Configured", trust: bool) -> str:
    """The model as the engine will choose it; looking makes no store."""
    settings = found.settings
    new = "://" not in settings.store and not Path(settings.store).exists()
    if new or found.sources["model"] != "default":
        return settings.model
    with opened(found, trust=trust) as engine:
        return str(engine.model_wanted)


def _say(machines: int, slots: int, one: str, of_what: str) -> None:
    from dartboard.cli.console import messages
    from dartboard.plain_text import counted

    said = f"{counted(machines, 'machine')} of the cluster, {counted(slots, one)} {of_what} at a time"
    messages().print(said, soft_wrap=True)
