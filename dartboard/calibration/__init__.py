"""Estimate σ from labelled queries: pairs of query and target passage, or judged facets.

:func:`calibrate` fits σ and the divisor of the label-free rule on half of the queries. It keeps what selects
best on the other half, by recall of the targets or by facets found. :func:`calibrate_temperature` does the
same for the pair scores of the hybrid variant.
"""

from dartboard.calibration.result import Calibration, Temperature
from dartboard.calibration.sigma import Labelled, calibrate, labelled_by, measure_for
from dartboard.calibration.statistics import Estimate, Evidence, fit_divisor, fit_sigma, fit_temperature
from dartboard.calibration.temperature import calibrate_temperature

__all__ = [
    "Calibration",
    "Estimate",
    "Evidence",
    "Labelled",
    "Temperature",
    "calibrate",
    "calibrate_temperature",
    "fit_divisor",
    "fit_sigma",
    "fit_temperature",
    "labelled_by",
    "measure_for",
]
