"""Several processes behind one port: started together, replaced when one ends, stopped together.

The first process binds the port and serves nothing. Its children open the index for reading and load the
model. On Linux each has a socket of its own on the port, and the kernel spreads new connections over them by
their addresses; elsewhere they share one, and a single idle process may take many connections. A child is a
session of its own, so that Ctrl-C reaches it once, through its parent; it ends when its parent is gone.
"""

import json
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from dartboard.api.settings import ServiceSettings
from dartboard.cli.serve import greeting, listening, serve_app
from dartboard.errors import ConfigError, DartboardError

logger = logging.getLogger(__name__)

MOST_ENDS, WITHIN = 5, 60.0
"""So many children may end by themselves in so many seconds; if more do, the service stops."""
_LATE = 15.0
"""Seconds that a child may take to end after its grace."""


@dataclass(eq=False)
class _Child:
    process: SpawnProcess
    bound: socket.socket
    news: Connection
    """What it says once: the lines of its greeting, or why it cannot start."""

    def greeting(self) -> dict[str, Any]:
        """Wait for what it says first; nothing where it ended without a word."""
        try:
            found: dict[str, Any] = json.loads(self.news.recv_bytes())
        except (EOFError, OSError):
            return {}
        return found

    def error(self) -> str:
        """Why it ended, if it said so."""
        found: dict[str, Any] = {}
        with suppress(EOFError, OSError):
            while self.news.poll():
                found |= json.loads(self.news.recv_bytes())
        return str(found.get("error", ""))


class Supervisor:
    """Runs a child for each of these sockets, which it closes, until it is told to stop."""

    def __init__(self, settings: ServiceSettings, sockets: Sequence[socket.socket]) -> None:
        self._settings = settings
        self._sockets = sockets
        self._children: list[_Child] = []
        self._ends: deque[float] = deque(maxlen=MOST_ENDS + 1)
        self._deadline: float | None = None

    def run(self) -> None:
        """Start the children, print where they serve, and replace those that end.

        Raises:
            ConfigError: a child could not start; the message is its own.
            DartboardError: children keep ending, or one had to be killed.
        """
        from dartboard.cli.console import messages

        with self._signals():
            try:
                with messages().status("Loading the model and opening the store"):
                    for bound in self._sockets:
                        if self._deadline is None:
                            self._start(bound)
                    greetings = [child.greeting() for child in self._children]
                self._greet(greetings)
                self._configure_log()
                self._supervise()
            finally:
                self._end()
                for bound in self._sockets:
                    bound.close()

    def _greet(self, greetings: list[dict[str, Any]]) -> None:
        if self._deadline is not None:
            return
        for one in greetings:
            if "lines" not in one:
                raise ConfigError(one.get("error", "a process of the service ended while it started"))
        count = self._settings.processes
        pids = ", ".join(str(child.process.pid) for child in self._children)
        more = f"  {count} processes ({pids}) read the index; nothing can be changed through the service."
        for line in [*greetings[0]["lines"], more]:
            print(line, flush=True)

    def _configure_log(self) -> None:
        from dartboard.api.guards.request_log import configure

        configure(with_pid=True)

    def _start(self, bound: socket.socket) -> None:
        context = multiprocessing.get_context("spawn")
        news, theirs = context.Pipe(duplex=False)
        process = context.Process(
            target=serve_child, args=(self._settings, bound, theirs), name="dartboard-serve"
        )
        with _interrupts_blocked():
            process.start()
        theirs.close()
        self._children.append(_Child(process, bound, news))
        if self._deadline is not None:  # told to stop in the meantime
            process.terminate()

    def _supervise(self) -> None:
        while self._children and self._deadline is None:
            # A signal's handler runs within the wait, which then goes on: look up every now and then.
            ended = wait([child.process.sentinel for child in self._children], timeout=1.0)
            for child in [one for one in self._children if one.process.sentinel in ended]:
                self._children.remove(child)
                if self._deadline is None:
                    self._replace(child)

    def _replace(self, child: _Child) -> None:
        child.process.join()
        why = child.error()
        self._ends.append(time.monotonic())
        if len(self._ends) > MOST_ENDS and self._ends[-1] - self._ends[0] < WITHIN:
            raise DartboardError(
                f"{len(self._ends)} processes of the service ended within {WITHIN:.0f} s, the last one with "
                f"code {child.process.exitcode}: the service stops. {why}"
            )
        logger.error(
            "process %s ended with code %s and is replaced. %s",
            child.process.pid,
            child.process.exitcode,
            why,
        )
        self._start(child.bound)  # connections that wait there are not lost

    def _end(self) -> None:
        """Stop all that run, and wait for them; what does not end is killed."""
        if self._deadline is None:
            self._stop(signal.SIGTERM)
        end = (self._deadline or 0.0) + self._settings.grace + _LATE
        for child in self._children:
            child.process.join(max(0.0, end - time.monotonic()))
        late = [child.process for child in self._children if child.process.is_alive()]
        for process in late:
            process.kill()
            process.join()
        if late:
            raise DartboardError(f"{len(late)} processes did not end in time and were killed")

    def _stop(self, number: int) -> None:
        """Pass a signal on; safe in its handler. Whatever comes first asks children to finish their work."""
        if self._deadline is None:
            self._deadline, number = time.monotonic(), signal.SIGTERM
        for child in tuple(self._children):
            if child.process.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(child.process.pid, number)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, lambda got, _: self._stop(got)) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def listening_together(host: str, port: int, count: int) -> list[socket.socket]:
    """Sockets that listen on one port; an error if somebody else has it."""
    alone = listening(host, port)
    if sys.platform != "linux":
        return [alone] * count
    number = alone.getsockname()[1]
    alone.close()
    return [listening(host, number, shared=True) for _ in range(count)]


def serve_child(settings: ServiceSettings, bound: socket.socket, news: Connection) -> None:
    """One process of the service: serve from the socket until told to stop."""
    if hasattr(os, "setsid"):
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    from dartboard.api.app import create_app
    from dartboard.blas import one_thread_each

    try:
        with one_thread_each():
            app = create_app(settings)
            app.state.service.engines.start()
            lines = greeting(app, settings, bound.getsockname()[1])
            news.send_bytes(json.dumps({"lines": lines}).encode())
            threading.Thread(target=_end_with_parent, name="dartboard-parent", daemon=True).start()
            serve_app(app, settings, bound)
    except (DartboardError, OSError) as error:
        news.send_bytes(json.dumps({"error": str(error)}).encode())
        sys.exit(1)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A child that is started here does not hear Ctrl-C before it has a session of its own."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
