"""Table A2: sentences beside negatives that UNA made of them. Nothing is trained for it."""

from train.tables.kind import Cell, Negative, Row, Table

PRINTED = {
    "Another factor was caffeine.": "another instrumental was x-45c.",
    "Greetings from the real universe.": "acylations from the real government-owned.",
    "We should play with legos at camp.": "we kulish play with minimum at yakiudon.",
}

TABLE = Table(
    "samples",
    "A2",
    "Sentences made by UNA",
    tuple(Row(one, {"negative": Cell(negative, Negative(one), "negative")}) for one, negative in PRINTED.items()),
)
