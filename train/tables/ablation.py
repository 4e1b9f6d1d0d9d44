"""Table 2: which words are replaced (step 2) and by which (step 3), at random or by tf-idf."""

from train.tables.kind import AVERAGE, DEV, Cell, Row, Table, trained


def _row(name: str, dev: float, average: float, **settings: str) -> Row:
    source = trained(**settings)
    return Row(name, {DEV: Cell(dev, source, DEV), AVERAGE: Cell(average, source, AVERAGE)})


TABLE = Table(
    "ablation",
    "2",
    "Words and replacements at random instead of by tf-idf",
    (
        _row("steps 2 and 3 random", 0.7798, 0.7258, select="random", replace="random"),
        _row("step 3 random", 0.8086, 0.7384, replace="random"),
        _row("UNA", 0.8235, 0.7614),
    ),
)
