"""The stored result of a calibration: the value of ``sigma="auto"`` for one corpus and one model."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, get_args

from dartboard.calibration.statistics import Estimate
from dartboard.embeddings.base import PairScorer
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection.auto_sigma import DIVISOR
from dartboard.selection.kernels import Auto
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA

FORMAT = 1

Kind = Literal["sigma", "divisor", "default"]
Measure = Literal["recall", "facets"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Temperature:
    """The value of ``sigma="auto"`` in the hybrid variant with one pair scorer, and the reason.

    ``kind`` is ``fitted`` (``estimate.value`` for every query) or ``auto`` (the standard deviation of each
    query's scores). ``held_out`` is the recall of the targets on queries that were not used for fitting, and
    ``p_value`` is that of the difference.
    """

    kind: Literal["fitted", "auto"]
    reason: str
    estimate: Estimate
    scorer: str
    held_out: dict[str, dict[str, float]] = field(default_factory=dict)
    p_value: float | None = None

    def value_or_auto(self) -> float | Auto:
        """The temperature for selection."""
        return self.estimate.value if self.kind == "fitted" else "auto"

    def check(self, scorer: PairScorer) -> None:
        """Check that the scorer is the one that the temperature was fitted to."""
        if self.scorer != scorer_name(scorer):
            raise ConfigError(
                f"the temperature of this calibration was fitted to {self.scorer}, "
                f"not to {scorer_name(scorer)}: calibrate again"
            )


def scorer_name(scorer: PairScorer) -> str:
    """Identifies a pair scorer: its class and model."""
    model = getattr(scorer, "model_name", "") or getattr(getattr(scorer, "model", None), "fingerprint", "")
    return f"{type(scorer).__name__}({model})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The value of ``sigma="auto"``, and the reason.

    ``kind`` is ``sigma`` (``sigma.value`` for every query), ``divisor`` (the rule with ``divisor.value``), or
    ``default`` (the rule with its default divisor). ``measure`` is what was compared: the ``recall`` of the
    targets, or the share of the ``facets`` that k picks cover. ``held_out`` is its mean for each kind on
    queries that were not used for fitting: on the original corpus and, if tried, with near-duplicates added.
    ``p_values`` are those of each fitted kind's difference from the rule. ``temperature`` is the same for the
    pair scores of the hybrid variant, if a scorer was given. Pairs whose passage is not among the candidates
    of its query carry no information; ``missed`` counts them.
    """

    kind: Kind
    reason: str
    sigma: Estimate
    divisor: Estimate
    held_out: dict[str, dict[str, float]] = field(default_factory=dict)
    p_values: dict[str, float] = field(default_factory=dict)
    distance: str = "scaled_cosine"
    model: str = ""
    k: int = 5
    triage_k: int = 100
    seed: int = 0
    missed: int = 0
    temperature: Temperature | None = None
    measure: Measure = "recall"

    def __post_init__(self) -> None:
        for name, allowed in (("kind", get_args(Kind)), ("measure", get_args(Measure))):
            if (given := getattr(self, name)) not in allowed:
                raise InvalidInputError(f"{name} must be one of {', '.join(allowed)}, got {given!r}")
        if self.kind == "sigma" and not SMALLEST_SIGMA <= self.sigma.value <= LARGEST_SIGMA:
            raise InvalidInputError(
                f"sigma must be in [{SMALLEST_SIGMA:g}, {LARGEST_SIGMA:g}], got {self.sigma.value}: "
                "calibrate again"
            )

    def sigma_or_rule(self) -> tuple[float | Auto, float]:
        """σ for selection, and the divisor of the rule if σ is ``"auto"``."""
        if self.kind == "sigma":
            return self.sigma.value, DIVISOR
        return "auto", self.divisor.value if self.kind == "divisor" else DIVISOR

    def summary(self) -> str:
        """The chosen value, its interval and the reason, in a sentence."""
        used = {
            "sigma": f"σ {self.sigma.value:.3g} ({self.sigma.interval})",
            "divisor": f"the rule with divisor {self.divisor.value:.3g} ({self.divisor.interval})",
            "default": f"the default rule (σ by likelihood: {self.sigma.interval})",
        }
        return f"{used[self.kind]}; {self.reason}"

    def check(self, model: str, distance: str) -> None:
        """Check that model and distance are those of the calibration."""
        if self.distance != distance or (self.model and self.model != model):
            raise ConfigError(
                f"this calibration was made with model {self.model!r} and distance {self.distance!r}, not "
                f"{model!r} and {distance!r}: calibrate again"
            )

    def to_json(self) -> dict[str, Any]:
        """JSON data, for a file or the settings of an index."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], where: str = "what is stored") -> Self:
        """The calibration from :meth:`to_json`; error messages call it ``where``."""
        try:
            given = dict(stored)
            if given.pop("format") != FORMAT:
                raise InvalidInputError(f"{where}: a calibration of another format: calibrate again")
            sigma, divisor = (_estimate(given.pop(name)) for name in ("sigma", "divisor"))
            found = given.pop("temperature", None)
            temperature = Temperature(**found | {"estimate": _estimate(found["estimate"])}) if found else None
            return cls(sigma=sigma, divisor=divisor, temperature=temperature, **given)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"{where} is not a calibration ({error}): calibrate again") from error

    def save(self, path: str | Path) -> None:
        """Write the calibration as JSON."""
        Path(path).write_text(json.dumps(self.to_json(), indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote."""
        try:
            stored = json.loads(Path(path).read_text())
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{path} is not a calibration ({error}): calibrate again") from error
        return cls.from_json(stored, str(path))


def _estimate(stored: Mapping[str, Any]) -> Estimate:
    found = Estimate(**stored)
    if not all(math.isfinite(number) and number > 0 for number in (found.value, found.low, found.high)):
        raise ValueError(f"{found.value} ({found.low} to {found.high}) is not an estimate")
    return found
