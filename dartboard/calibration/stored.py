"""A calibration as it is kept: what ``sigma="auto"`` means for one corpus and one model, and why."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, Self

from dartboard.calibration.likelihood import Estimate
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection import bandwidth

FORMAT = 1

Kind = Literal["sigma", "divisor", "default"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What to use for ``sigma="auto"``, and why.

    ``kind`` is ``sigma`` (the number ``sigma.value`` for every query), ``divisor`` (the rule with the
    divisor ``divisor.value``), or ``default`` (the rule as it comes). ``held_out`` is the recall of the
    targets on queries that were not fitted on, for each kind: on the corpus as it is, and with near-copies.
    """

    kind: Kind
    reason: str
    sigma: Estimate
    divisor: Estimate
    held_out: dict[str, dict[str, float]] = field(default_factory=dict)
    distance: str = "scaled_cosine"
    model: str = ""
    k: int = 5
    triage_k: int = 100
    seed: int = 0

    def sigma_or_rule(self) -> tuple[float | Literal["auto"], float]:
        """σ for selection, and the divisor of the rule where σ is ``"auto"``."""
        if self.kind == "sigma":
            return self.sigma.value, bandwidth.DIVISOR
        return "auto", self.divisor.value if self.kind == "divisor" else bandwidth.DIVISOR

    def check(self, model: str, distance: str) -> None:
        """A calibration holds for the model and the distance that it was made with."""
        if self.distance != distance or (self.model and self.model != model):
            raise ConfigError(
                f"this calibration was made with model {self.model!r} and distance {self.distance!r}, not "
                f"{model!r} and {distance!r}: calibrate again"
            )

    def save(self, path: str | Path) -> None:
        """Write the calibration as JSON."""
        Path(path).write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote."""
        try:
            stored = json.loads(Path(path).read_text())
            if stored.pop("format") != FORMAT:
                raise InvalidInputError(f"{path}: a calibration of another format: calibrate again")
            sigma, divisor = (Estimate(**stored.pop(name)) for name in ("sigma", "divisor"))
            return cls(sigma=sigma, divisor=divisor, **stored)
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise InvalidInputError(f"{path} is no calibration ({error}): calibrate again") from error
