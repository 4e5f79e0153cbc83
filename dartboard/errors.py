"""Every error that dartboard raises on purpose.

::

    DartboardError
    ├── InvalidInputError (ValueError)    data that cannot be used: NaN vectors, an empty query …
    ├── ConfigError (ValueError)          a knob outside its range, or knobs that contradict each other
    ├── DatasetError (ValueError)         a data set that is missing or malformed: file and line are named
    ├── ModelError (RuntimeError)         a model that cannot be loaded, verified or trusted
    │   └── EndpointError                 a remote model that refused, timed out or answered nonsense
    └── MissingExtraError (ImportError)   an optional dependency; the message is the command to type
"""


class DartboardError(Exception):
    """Base of all errors below, so that one ``except`` can catch them."""


class InvalidInputError(DartboardError, ValueError):
    """The data given cannot be used as it is."""


class ConfigError(DartboardError, ValueError):
    """A parameter is outside its range or contradicts another one."""


class DatasetError(DartboardError, ValueError):
    """A data set is missing, or a row of it cannot be used."""


class ModelError(DartboardError, RuntimeError):
    """A model could not be loaded or verified."""


class EndpointError(ModelError):
    """A remote model refused, timed out or answered something unusable."""


class MissingExtraError(DartboardError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'dartboard[{extra}]'")
