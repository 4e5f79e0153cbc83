"""Every error that dartboard raises on purpose.

::

    DartboardError
    ├── InvalidInputError (ValueError)    data that cannot be used: NaN vectors, an empty query …
    ├── ConfigError (ValueError)          a knob outside its range, or knobs that contradict each other
    ├── DatasetError (ValueError)         a data set that is missing or malformed: file and line are named
    ├── IngestError (ValueError)          a document that cannot be read; the file is named
    ├── StoreError (RuntimeError)         a store that cannot do what was asked
    │   ├── StoreLockedError              another process is writing to it
    │   ├── StoreFormatError              damaged, of a newer format, or made with another model
    │   ├── StoreUnavailableError         a server that cannot be reached, or refuses
    │   └── CollectionError               a collection that is missing, or exists already
    ├── ModelError (RuntimeError)         a model that cannot be loaded, verified or trusted
    │   ├── EndpointError                 a remote model that refused, timed out or answered nonsense
    │   └── UntrustedModelError           a name from a file that the user has not confirmed
    ├── DeadlineError (TimeoutError)      work that was given less time than it needs, or that was cancelled
    ├── BudgetError (RuntimeError)        the next call could cost more than is left of the budget
    ├── ClusterError (RuntimeError)       machines that cannot be reached, are lost, or run something else
    └── MissingExtraError (ImportError)   an optional dependency; the message is the command to type
"""

from pathlib import Path


class DartboardError(Exception):
    """Base of every error that dartboard raises on purpose.

    Args:
        message: what was wrong, what is allowed and what to do, for people.
        field: the option or input at fault, by its name in Python, for programs.

    Attributes:
        code: one word for the kind of error, for programs; it does not change between releases.

    Example:
        >>> from dartboard import DartboardConfig, DartboardError
        >>> try:
        ...     DartboardConfig(top_k=0)
        ... except DartboardError as error:
        ...     print(error)
        top_k must be a whole number in [1, 20], got 0
    """

    code: str = "error"

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class InvalidInputError(DartboardError, ValueError):
    """The data given cannot be used as it is."""

    code = "invalid_input"


class ConfigError(DartboardError, ValueError):
    """A parameter is outside its range or contradicts another one."""

    code = "invalid_option"


class DatasetError(DartboardError, ValueError):
    """A data set is missing, or a row of it cannot be used."""

    code = "invalid_dataset"


class IngestError(DartboardError, ValueError):
    """A document could not be read or split."""

    code = "unreadable_document"


class StoreError(DartboardError, RuntimeError):
    """A store could not do what was asked of it; what it held before is still there."""

    code = "store_failed"


class StoreLockedError(StoreError):
    """Another process is writing to the store."""

    code = "store_locked"


class StoreFormatError(StoreError):
    """The store is damaged, of a newer format, or was made with another model."""

    code = "store_format"


class StoreUnavailableError(StoreError):
    """The store's server cannot be reached, or refuses."""

    code = "store_unavailable"


class CollectionError(StoreError):
    """A collection is missing, or exists already."""

    code = "collection"


class ModelError(DartboardError, RuntimeError):
    """A model could not be loaded or verified."""

    code = "model_failed"


class EndpointError(ModelError):
    """A remote model refused, timed out or answered something unusable."""

    code = "endpoint_failed"


class UntrustedModelError(ModelError):
    """A file names what the user has not confirmed: nothing was loaded, nothing was sent."""

    code = "untrusted_model"


class DeadlineError(DartboardError, TimeoutError):
    """Work ran out of the time that it was given, or was cancelled."""

    code = "deadline"


class BudgetError(DartboardError, RuntimeError):
    """The next call could cost more than is left; what was paid for is kept."""

    code = "budget"


class ClusterError(DartboardError, RuntimeError):
    """A cluster cannot be reached, lost its machines, or its machines run something else."""

    code = "cluster_failed"


class MissingExtraError(DartboardError, ImportError):
    """An optional dependency is not installed."""

    code = "missing_extra"

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: {install_command(extra)}")


def install_command(extra: str = "", *, again: bool = False) -> str:
    """What to type to install dartboard with an extra: every message that names one asks here.

    In a clone, also one that is installed with ``pip install -e``, pip has to be given the clone: there is no
    release on an index. Otherwise pip finds the extra in what is installed. The clone is not named by its
    path, since a service shows the message to its clients. ``again`` replaces what is there already.
    """
    option = " --force-reinstall" if again else ""
    extras = f"[{extra}]" if extra else ""
    if _is_clone(Path(__file__).parents[1]):
        return f"pip install{option} -e '.{extras}' in the clone of dartboard"
    return f"pip install{option} 'dartboard{extras}'"


def _is_clone(folder: Path) -> bool:
    """Whether this is the project's own folder, rather than one of installed packages."""
    try:
        return 'name = "dartboard"' in (folder / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
