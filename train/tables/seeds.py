"""Table A7: ten seeds of SimCSE and of paraphrasing with UNA."""

from train.tables.kind import AVERAGE, PARAPHRASE, WITH_PARAPHRASES, Cell, Row, Table, trained

SIMCSE = "SimCSE"
PRINTED = {
    42: (0.7532, 0.7767),
    0: (0.7526, 0.7691),
    1: (0.7452, 0.7680),
    11: (0.7457, 0.7655),
    15: (0.7488, 0.7668),
    48: (0.7478, 0.7646),
    111: (0.7651, 0.7726),
    421: (0.7395, 0.7692),
    456: (0.7562, 0.7739),
    3407: (0.7623, 0.7707),
}
SOURCES = {SIMCSE: trained(augment="none"), WITH_PARAPHRASES: trained(texts=PARAPHRASE)}
MEAN = {SIMCSE: (0.7516, 0.0079), WITH_PARAPHRASES: (0.7698, 0.0038)}


def seed_row(seed: int) -> Row:
    """The row of a seed; the paper's figures are None for a seed that it does not have."""
    figures = PRINTED.get(seed, (None, None))
    cells = zip(SOURCES.items(), figures, strict=True)
    return Row(str(seed), {name: Cell(figure, source, AVERAGE, seed=seed) for (name, source), figure in cells})


TABLE = Table(
    "seeds",
    "A7",
    "Seeds, by the average of the seven STS tasks",
    (
        *map(seed_row, PRINTED),
        Row("mean", {name: Cell(MEAN[name][0], source, AVERAGE, MEAN[name][1]) for name, source in SOURCES.items()}),
    ),
    seeds=tuple(PRINTED),
    of_seed=seed_row,
)
