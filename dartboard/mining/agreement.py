"""How far a rate of errors can be trusted, and how far two judges say the same beyond chance.

Wilson's interval for x errors among n, with z the normal quantile::

    centre = (x + z²/2) / (n + z²)        half = z / (n + z²) · sqrt(x (n - x) / n + z²/4)

Cohen's kappa is ``(p_o - p_e) / (1 - p_e)``: observed agreement p_o, and p_e, what two judges with the same
shares of labels would agree on by chance. Where both give one and the same label to everything, chance
explains all, and kappa is undefined: None. Its interval is a percentile bootstrap; verdicts of one case
resemble each other, so whole cases are drawn where ``groups`` says which verdict belongs to which. Judges who
never differ do not differ in any resample either: that would be an interval of no width, which claims a
certainty that nobody has, so there is none then: ``most_apart`` says what can be said.
"""

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist

import numpy as np

from dartboard.datasets.mined import Agreement, Label
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.types import FloatArray

RESAMPLES = 2000
LABELS: tuple[Label, ...] = ("YES", "NO", "UNSURE")

_BLOCK = 4_000_000
_EQUAL = 1e-12


def wilson(errors: float, trials: float, *, level: float = 0.95) -> tuple[float, float]:
    """The interval of a rate; the whole of [0, 1] where nothing was tried."""
    if not 0 < level < 1:
        raise ConfigError(f"level must be between 0 and 1, got {level}", field="level")
    if not 0 <= errors <= trials:
        raise InvalidInputError(
            f"errors must be between 0 and the {trials} trials, got {errors}", field="errors"
        )
    if trials == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    centre = (errors + z * z / 2) / (trials + z * z)
    half = z / (trials + z * z) * math.sqrt(errors * (trials - errors) / trials + z * z / 4)
    # At no errors (or nothing else) the end is 0 (or 1) exactly, which rounding would miss.
    low = 0.0 if errors == 0 else max(0.0, centre - half)
    return low, 1.0 if errors == trials else min(1.0, centre + half)


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Agreement beyond chance, from -1 to 1; None where chance explains everything."""
    value = float(_kappas(_tables(first, second, range(len(first))).sum(axis=0)[None])[0])
    return None if math.isnan(value) else value


def agree(
    first: Sequence[Label],
    second: Sequence[Label],
    *,
    names: tuple[str, str] = ("first", "second"),
    groups: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
) -> Agreement:
    """Kappa with its interval; resamples in which it is undefined are left out."""
    if groups is not None and len(groups) != len(first):
        raise InvalidInputError(
            f"{len(groups)} groups for {len(first)} verdicts: need one each", field="groups"
        )
    if resamples < 1:
        raise ConfigError(f"resamples must be >= 1, got {resamples}", field="resamples")
    tables = _tables(first, second, range(len(first)) if groups is None else groups, LABELS)
    whole = tables.sum(axis=0)
    observed = float(np.trace(whole) / max(1, len(first)))
    kappa = float(_kappas(whole[None])[0])
    drawn = _resampled(tables, resamples, seed)
    drawn = drawn[~np.isnan(drawn)]
    low = high = None
    if not math.isnan(kappa) and len(drawn) and np.ptp(drawn) > _EQUAL:
        low, high = (float(end) for end in np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]))
    return Agreement(
        first=names[0],
        second=names[1],
        pairs=len(first),
        cases=len(tables),
        observed=round(observed, 6),
        kappa=None if math.isnan(kappa) else round(kappa, 6),
        low=None if low is None else round(low, 6),
        high=None if high is None else round(high, 6),
        most_apart=round(wilson((1 - observed) * len(tables), len(tables))[1], 6),
        table=tuple(tuple(int(count) for count in row) for row in whole),
    )


def _tables(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    groups: Sequence[Hashable],
    labels: Sequence[Hashable] | None = None,
) -> FloatArray:
    """Counts by group, label of the first and label of the second, ``(G, L, L)``."""
    if len(first) != len(second):
        raise InvalidInputError(f"{len(first)} labels against {len(second)}: both must judge the same pairs")
    order = labels if labels is not None else list(dict.fromkeys([*first, *second]))
    place = {label: at for at, label in enumerate(order)}
    if unknown := {*first, *second} - place.keys():
        raise InvalidInputError(
            f"unknown label {min(map(str, unknown))!r}: one of {', '.join(map(str, order))}",
            field="labels",
        )
    rows = {group: at for at, group in enumerate(dict.fromkeys(groups))}
    counts = np.zeros((len(rows), len(order), len(order)))
    np.add.at(
        counts,
        ([rows[one] for one in groups], [place[one] for one in first], [place[one] for one in second]),
        1.0,
    )
    return counts


def _kappas(tables: FloatArray) -> FloatArray:
    """Kappa of each table of ``(R, L, L)``, NaN where it is undefined."""
    total = tables.sum(axis=(1, 2))
    agreed = np.trace(tables, axis1=1, axis2=2) * total
    chance = np.einsum("ri,ri->r", tables.sum(axis=2), tables.sum(axis=1))
    room = total * total - chance
    found: FloatArray = np.full(len(tables), np.nan)
    np.divide(agreed - chance, room, out=found, where=room > 0)
    return found


def _resampled(tables: FloatArray, resamples: int, seed: int) -> FloatArray:
    groups, labels = tables.shape[:2]
    if not groups:
        return np.zeros(0)
    rng = np.random.default_rng(seed)
    flat = tables.reshape(groups, -1)
    step = max(1, _BLOCK // groups)
    found = []
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        weights = rng.multinomial(groups, np.full(groups, 1 / groups), size=size).astype(np.float64)
        found.append(_kappas((weights @ flat).reshape(size, labels, labels)))
    return np.concatenate(found)
