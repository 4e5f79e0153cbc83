"""How redundant a corpus is, what causes it, and how to clean it: ``engine.duplicates()``."""

from dartboard.duplicates.deletion import Deletion, plan_deletion, undo_deletion
from dartboard.duplicates.report import DuplicateReport, Group, Repeats, find_duplicates

__all__ = [
    "Deletion",
    "DuplicateReport",
    "Group",
    "Repeats",
    "find_duplicates",
    "plan_deletion",
    "undo_deletion",
]
