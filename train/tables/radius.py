"""Table A6: how far in the ranking of words a replacement may be."""

from train.tables.kind import Table, dev_row

TABLE = Table(
    "radius",
    "A6",
    "How far replacements may be",
    (
        dev_row("6000", 0.8101, 0.8319, radius=6000),
        dev_row("5000", 0.8158, 0.8363, radius=5000),
        dev_row("4000", 0.8235, 0.8345, radius=4000),
        dev_row("3000", 0.8167, 0.8332, radius=3000),
        dev_row("2000", 0.8264, 0.8322, radius=2000),
        dev_row("1000", 0.8073, 0.8331, radius=1000),
    ),
    curve="radius",
)
