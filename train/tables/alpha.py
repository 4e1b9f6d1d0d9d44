"""Table A4: negatives in one step of every alpha; 0 is training without any."""

from train.tables.kind import Table, dev_row

TABLE = Table(
    "alpha",
    "A4",
    "How often there are negatives",
    (
        dev_row("9", 0.8213, 0.8289, alpha=9),
        dev_row("7", 0.8180, 0.8295, alpha=7),
        dev_row("5", 0.8235, 0.8345, alpha=5),
        dev_row("3", 0.7973, 0.8254, alpha=3),
        dev_row("1", 0.7929, 0.8230, alpha=1),
        dev_row("0", 0.8161, 0.8235, augment="none"),
    ),
    curve="alpha",
)
