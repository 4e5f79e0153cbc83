"""How much one call may ask for. The numbers stand in the schemas, so that a model knows them."""

K = 50
TOKEN_BUDGET = 20_000
QUERY_TOKENS = 512
QUERY_CHARACTERS = 8_192
FILTER_CHARACTERS = 2_000
ID_CHARACTERS = 1_000
EXCLUDED = 500
SEEN = 500
OFFSET = 1_000
FIELD_CHARACTERS = 200
CAPPED_FIELDS = 10

TEXTS = 200
TEXT_CHARACTERS = 20_000
ALL_CHARACTERS = 400_000
VECTORS = 1_000
DIMENSIONS = 4_096

SHOWN_CHARACTERS = 20_000
"""Longer passages are cut in answers."""
SHOWN_IDS = 6
"""Of the passages that a pick stands for, so many are named."""
SHOWN_COPIES = 5
SHOWN_DIFFERENCE = 100
"""Of what copies have instead, so many characters are shown."""

SECONDS = 60.0
AT_ONCE = 4
LINE_BYTES = 64 * 1024 * 1024
BODY_BYTES = 16 * 1024 * 1024
