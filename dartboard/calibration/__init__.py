"""σ estimated from pairs of a query and the passage it means, instead of tuned.

:func:`calibrate` fits σ and the divisor of the label-free rule on half of the queries and keeps what selects
best on the other half, on the corpus as it is and with near-copies added.
"""

from dartboard.calibration.choosing import calibrate
from dartboard.calibration.labelled import Labelled, labelled_by
from dartboard.calibration.likelihood import Estimate, Evidence, fit_divisor, fit_sigma, fit_temperature
from dartboard.calibration.stored import Calibration

__all__ = [
    "Calibration",
    "Estimate",
    "Evidence",
    "Labelled",
    "calibrate",
    "fit_divisor",
    "fit_sigma",
    "fit_temperature",
    "labelled_by",
]
