"""A small package with what makes names hard: re-exports, aliases, stars, lazy tables, circles, bad files."""

from pathlib import Path

FILES = {
    "toy/__init__.py": '''\
# Copyright: nobody.
"""A toy of a package."""

from .agents import Robot
from . import tools as implements

__all__ = ["Robot"]
''',
    "toy/agents/__init__.py": """\
from typing import TYPE_CHECKING

from .base import *
from .robot import Robot, Android
from .robot import helper as assist
from .circle import lost

if TYPE_CHECKING:
    from .lazy import Sleeper
else:
    Sleeper = None

_LAZY = {"Dreamer": (".lazy", "Dreamer"), "Root": ("..tools.wrench", "Wrench")}


def __getattr__(name):
    raise AttributeError(name)
""",
    "toy/agents/base.py": '''\
"""What all agents share."""

__all__ = ["Base", "LIMIT"]

LIMIT = 3


class Base:
    """The base of agents.

    It says little.
    """

    name: str
    """The name, an identifier."""

    def __init__(self, name: str):
        self.name = name

    def run(self, steps: int = 1) -> str:
        """Run for some steps.

        The steps are counted from zero.
        """
        return self._walk(steps)

    def short(self):
        return 1

    def _walk(self, steps):
        # one foot after the other
        return "left right" * steps


class Hidden(Base):
    pass
''',
    "toy/agents/robot.py": '''\
"""Robots."""

import typing

from ._parts import Arm, _Bolt
from .base import Base


class Robot(Base):
    """A robot with arms."""

    arms: int = 2

    @property
    def reach(self) -> float:
        """How far it reaches."""
        return 1.5

    @reach.setter
    def reach(self, value: float) -> None:
        self._reach = value

    @typing.overload
    def lift(self, what: int) -> int: ...

    @typing.overload
    def lift(self, what: str) -> str: ...

    def lift(
        self,
        what,
    ):
        # comment before the docstring
        """Lift something.

        Heavy things take longer.
        """
        return what


Android = Robot
first_robot = Robot("one")


async def helper(robot: "Robot", *, tool: str = "wrench") -> None:
    """Help a robot."""


def _secret():
    """Nobody sees it."""
    return "secret sauce"
''',
    "toy/agents/_parts.py": '''\
class Arm:
    """An arm, private by its module."""


class _Bolt:
    """A bolt."""
''',
    "toy/agents/lazy.py": '''\
class Sleeper:
    """Sleeps."""


class Dreamer:
    """Dreams."""
''',
    "toy/agents/circle.py": "from .circle2 import lost\n",
    "toy/agents/circle2.py": "from .circle import lost\nfrom .gone import gone\nself_made = self_made\n",
    "toy/tools/__init__.py": "from .wrench import Wrench, default_wrench\nfrom ..agents._parts import Arm\n",
    "toy/tools/wrench.py": '''\
class Wrench:
    """Turns bolts."""

    size: int = 8


default_wrench = Wrench()
''',
    "toy/broken.py": "def broken(:\n",
    "toy/nul.py": "x = 1\x00\n",
    "toy/latin.py": "# -*- coding: latin-1 -*-\nNAME = 'caf\xe9'\n",
    "toy/empty.py": "",
}


def write_package(folder: Path, files: dict[str, str] | None = None) -> Path:
    """The package below a folder, with the metadata that an installer leaves."""
    for name, text in (files or FILES).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("latin-1" if "latin" in name else "utf-8"))
    info = folder / "toy_robots-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-robots\nVersion: 2.5\n")
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in files or FILES))
    return folder
