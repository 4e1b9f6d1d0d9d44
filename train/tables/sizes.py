"""Table A1: the sizes of the STS test sets. Nothing is trained for it."""

from train.tables.kind import Cell, Row, Table, TestSet

PRINTED = {
    "STS12": 3108,
    "STS13": 1500,
    "STS14": 3750,
    "STS15": 3000,
    "STS16": 1186,
    "STSBenchmark": 1379,
    "SICKRelatedness": 4927,
}

TABLE = Table(
    "sizes",
    "A1",
    "Size of the STS test sets",
    tuple(Row(task, {"pairs": Cell(pairs, TestSet(task), "pairs")}) for task, pairs in PRINTED.items()),
)
