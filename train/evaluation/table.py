"""Results as text: one table a kind of task, and the protocol under it."""

from __future__ import annotations

from collections.abc import Sequence

from train.evaluation.results import Results

TASKS_OF_AVERAGE = 7  # of STS and of transfer: what papers call the average
SHORT = {"STSBenchmark": "STS-B", "SICKRelatedness": "SICK-R"}


def format_results(results: Results) -> str:
    """All tables of `results`, then the protocol, then what needs saying."""
    protocol = results.protocol
    parts = []
    if results.sts:
        aggregate = protocol["aggregate"]
        for measure in ("spearman", "pearson"):
            scores = {name: task[measure][aggregate] for name, task in results.sts.items()}
            average = results.averages["sts"] if measure == "spearman" else _mean(list(scores.values()))
            title = f"{measure.capitalize()} x 100, {aggregate!r}, {protocol['split']}"
            parts.append(_table(title, scores, average, scale=100))
        for measure in ("alignment", "uniformity"):
            scores = {name: task[measure] for name, task in results.sts.items()}
            parts.append(_table(f"{measure.capitalize()} (lower is better)", scores, _mean(list(scores.values())), 1))
    if results.transfer:
        column = "dev_accuracy" if protocol["split"] == "dev" else "accuracy"
        scores = {name: task[column] for name, task in results.transfer.items()}
        parts.append(_table(f"Accuracy, %, {protocol['split']}", scores, results.averages["transfer"], scale=1))
    hidden = () if results.transfer else ("classifier",)
    lines = [f"  {name}: {value}" for name, value in protocol.items() if name not in hidden]
    parts.append("\n".join([f"model: {results.model}", "protocol", *lines]))
    parts += [f"note: {note}" for note in results.notes]
    return "\n\n".join(parts)


def _table(title: str, scores: dict[str, float | None], average: float | None, scale: float) -> str:
    heads = [SHORT.get(name, name) for name in scores]
    values = list(scores.values())
    if len(scores) > 1:
        heads.append("Avg." if len(scores) == TASKS_OF_AVERAGE else f"mean of {len(scores)}")
        values.append(average)
    cells = ["-" if value is None else f"{value * scale:.2f}" for value in values]
    widths = [max(len(head), len(cell)) for head, cell in zip(heads, cells, strict=True)]

    def line(values: Sequence[str]) -> str:
        return "  ".join(value.rjust(width) for value, width in zip(values, widths, strict=True))

    return "\n".join([title, line(heads), line(cells)])


def _mean(values: list[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None
