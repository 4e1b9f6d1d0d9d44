"""Results as text: for each kind of task one table per measure, and the protocol below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from train.evaluation.protocol import EvaluationProtocol
from train.evaluation.results import Results
from train.evaluation.tasks.kind import Column, Scores, mean_of
from train.evaluation.tasks.registry import TASKS, kind_of, suite


def format_results(results: Results) -> str:
    """All tables of `results`, then the protocol, then the notes."""
    protocol = results.protocol
    parts = []
    hidden: set[str] = set()
    for name, scores in results.scores.items():
        kind = kind_of(name)
        if scores:
            parts += [_table(column, scores, name) for column in kind.columns(protocol)]
        else:
            hidden |= {*kind.stated(EvaluationProtocol())}
    lines = [f"  {name}: {value}" for name, value in protocol.items() if name not in hidden]
    parts.append("\n".join([f"model: {results.model}", "protocol", *lines]))
    parts += [f"note: {note}" for note in results.notes]
    return "\n\n".join(parts)


def _table(column: Column, tasks: Mapping[str, Scores], kind: str) -> str:
    heads = [TASKS[name].title if name in TASKS else name for name in tasks]
    values = [column.value(scores) for scores in tasks.values()]
    if len(tasks) > 1 and column.averaged:
        heads.append("Avg." if {*tasks} == {*suite(kind)} else f"mean of {len(tasks)}")
        values.append(mean_of(column, tasks))
    cells = ["-" if value is None else f"{value * column.scale:.2f}" for value in values]
    widths = [max(len(head), len(cell)) for head, cell in zip(heads, cells, strict=True)]

    def line(values: Sequence[str]) -> str:
        return "  ".join(value.rjust(width) for value, width in zip(values, widths, strict=True))

    return "\n".join([column.title, line(heads), line(cells)])
