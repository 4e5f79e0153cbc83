"""σ estimated from pairs of a query and the passage it means, or from judged facets, instead of tuned.

:func:`calibrate` fits σ and the divisor of the label-free rule on half of the queries and keeps what selects
best on the other half, by the recall of the targets or by the facets found; :func:`calibrate_temperature`
does so for the pair scores of the hybrid variant.
"""

from dartboard.calibration.choosing import calibrate, measure_for
from dartboard.calibration.labelled import Labelled, labelled_by
from dartboard.calibration.likelihood import Estimate, Evidence, fit_divisor, fit_sigma, fit_temperature
from dartboard.calibration.stored import Calibration
from dartboard.calibration.temperature import Temperature, calibrate_temperature

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
