"""Table A5: the mean probability that a word is replaced."""

from train.tables.kind import Table, dev_row

TABLE = Table(
    "beta",
    "A5",
    "How many words are replaced",
    (
        dev_row("0.8", 0.8061, 0.8328, beta=0.8),
        dev_row("0.7", 0.8122, 0.8354, beta=0.7),
        dev_row("0.6", 0.8176, 0.8355, beta=0.6),
        dev_row("0.5", 0.8235, 0.8345, beta=0.5),
        dev_row("0.4", 0.7968, 0.8320, beta=0.4),
        dev_row("0.3", 0.7798, 0.8313, beta=0.3),
    ),
    curve="beta",
)
