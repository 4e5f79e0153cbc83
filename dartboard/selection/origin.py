"""What a pool was made from: the caller's own objects, so that a result can be drawn when somebody looks.

Nothing is copied or worked out until then. A result keeps the arrays alive that it was selected from, and
shows them as they are when it is shown.
"""

from typing import Any, NamedTuple

from dartboard.selection.kernels import Distance


class Origin(NamedTuple):
    """A query and its candidates as they were given: vectors, or distances where ``vectors`` is False."""

    query: Any
    candidates: Any
    distance: Distance
    vectors: bool = True
