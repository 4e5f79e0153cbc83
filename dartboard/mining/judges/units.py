"""Spellings of units: one name for each, and what stands before or right after a number."""

_UNITS = {
    "percent": ("percent", "pct", "percents"),
    "dollar": ("dollar", "dollars", "usd"),
    "euro": ("euro", "euros", "eur"),
    "pound": ("pound", "pounds", "gbp"),
    "kilometre": ("km", "kms", "kilometre", "kilometres", "kilometer", "kilometers"),
    "metre": ("m", "metre", "metres", "meter", "meters"),
    "centimetre": ("cm", "centimetre", "centimetres", "centimeter", "centimeters"),
    "millimetre": ("mm", "millimetre", "millimetres", "millimeter", "millimeters"),
    "mile": ("mi", "mile", "miles"),
    "foot": ("ft", "foot", "feet"),
    "kilogram": ("kg", "kgs", "kilogram", "kilograms"),
    "gram": ("g", "gram", "grams"),
    "hour": ("h", "hr", "hrs", "hour", "hours"),
    "minute": ("min", "mins", "minute", "minutes"),
    "second": ("s", "sec", "secs", "second", "seconds"),
    "millisecond": ("ms", "millisecond", "milliseconds"),
}
UNIT_OF = {spelling: unit for unit, spellings in _UNITS.items() for spelling in spellings}
CURRENCY = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee"} | {
    code: UNIT_OF[code] for code in ("usd", "eur", "gbp")
}
SHORT_SCALES = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
