"""Write a table of measured scores as JSON, Markdown, CSV, LaTeX, or as the figure of a curve."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.paper.tables import AVERAGE, DEV, Cell, Scores, Source
from bench.report import table
from train.evaluation.tasks.registry import TASKS
from train.report.runs import STS_AVERAGE
from una_fast.imports import naming_extras
from una_fast.storage.files import write_file, write_json

TITLES = {AVERAGE: "Avg.", DEV: "STS-B dev"} | {row.name: row.short for row in TASKS.values() if row.short}
NOTE = "Measured ± deviation over seeds, in brackets the paper's figure and the difference; scores × 100."
LATEX = {character: "\\" + character for character in "&%#_$"} | {"±": "$\\pm$"}
FIXED: Any = {"svg.hashsalt": "una_fast", "svg.fonttype": "none", "font.size": 9}  # equal figures give equal bytes
Entry = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A table with the scores so far.

    about: the entries of table.json except "rows". They contain the "notes" that every form shows.
    scores: the scores of each source that was measured.
    """

    about: Mapping[str, Any]
    cells: Sequence[Cell]
    scores: Mapping[Source, Scores]

    @cached_property
    def entries(self) -> dict[str, dict[str, Entry]]:
        """The figures of each cell, by row and column.

        The keys are paper, paper_deviation, measured (mean over seeds), difference, deviation and seeds. Scores are
        fractions; deviations are sample deviations (n - 1); missing values are None.
        """
        entries: dict[str, dict[str, Entry]] = {}
        for cell in self.cells:
            entries.setdefault(cell.row, {})[cell.column] = _measured(cell, self.scores.get(cell.source, {}))
        return entries

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(dict.fromkeys(cell.column for cell in self.cells))

    def save(self, folder: Path) -> None:
        """Write FOLDER/table.json and table.md, and both under the table's name in FOLDER/tables."""
        rows = []
        for label, entries in self.entries.items():
            names = next(iter(entries.values()))
            rows.append({"name": label} | {name: {key: one[name] for key, one in entries.items()} for name in names})
        for stem in (folder / "tables" / self.about["table"], folder / "table"):
            write_json(Path(f"{stem}.json"), {**self.about, "rows": rows})
            write_file(Path(f"{stem}.md"), self.markdown() + "\n")

    def markdown(self) -> str:
        """Return the title, the table, and notes on encoders, variant and scores, as Markdown."""
        made = f"Encoders: {', '.join(self.about['models'])}. " if self.about["models"] else ""
        head = f"Table {self.about['number']}: {self.about['title']}"
        notes = [f"{made}Negatives: --variant {self.about['variant']}.", NOTE, *self.about["notes"]]
        return "\n\n".join([head, table(*self._texts()), *notes])

    def csv(self) -> str:
        """Return the table as CSV, with one line per cell. Scores are fractions. The last column repeats the notes."""
        names = ("paper", "paper_deviation", "measured", "deviation", "difference")
        file, notes = io.StringIO(), " ".join(self.about["notes"])
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["row", "column", *names, "seeds", "notes"])
        for label, entries in self.entries.items():
            for column, one in entries.items():
                writer.writerow([label, column, *(one[name] for name in names), " ".join(one["seeds"]), notes])
        return file.getvalue()

    def latex(self) -> str:
        """Return a LaTeX tabular for the package booktabs, with the figures and notes of `markdown`."""
        head, rows = self._texts()
        lines = [" & ".join(map(_latex, line)) + r" \\" for line in (head, *rows)]
        frame = ["\\begin{tabular}{l" + "r" * (len(head) - 1) + "}", r"\toprule"]
        notes = [rf"\par\footnotesize {_latex(note)}" for note in self.about["notes"]]
        return "\n".join([*frame, lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}", *notes, ""])

    def svg(self) -> str:
        """Return curves of the measured and the paper's scores as SVG. The rows must be values of an option."""
        with naming_extras():
            import matplotlib as mpl  # takes a second
            from matplotlib.figure import Figure

        with mpl.rc_context(FIXED):
            figure = Figure(figsize=(5, 3.2), layout="constrained")
            axes, file = figure.subplots(), io.StringIO()
            for number, column in enumerate(self.columns):
                for name, style in (("measured", "-"), ("paper", "--")):
                    scores = {float(row): one[column][name] for row, one in self.entries.items() if one[column][name]}
                    x, y = sorted(scores), [100 * scores[value] for value in sorted(scores)]
                    axes.plot(x, y, style, color=f"C{number}", label=f"{column}, {name}", linewidth=1.2)
            axes.set(xlabel=self.about["curve"], ylabel="STS-B dev x 100")
            axes.legend(fontsize=7)
            figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()

    def _texts(self) -> tuple[list[str], list[list[str]]]:
        """Return the cells of the header and of the rows, as text."""
        head = [self.about["curve"], *(TITLES.get(column, column) for column in self.columns)]
        return head, [[label, *(_text(**one) for one in row.values())] for label, row in self.entries.items()]


def _latex(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in text)


def _measured(cell: Cell, scores: Scores) -> Entry:
    name = STS_AVERAGE if cell.score == AVERAGE else cell.score
    seeds = {seed: by_name.get(name) for seed, by_name in scores.items() if cell.seed in (None, seed)}
    values = [value for value in seeds.values() if value is not None]
    several = len(values) > 1 and not isinstance(values[0], str)
    measured = statistics.fmean(values) if several else next(iter(values), None)
    compared = isinstance(measured, (int, float)) and isinstance(cell.paper, (int, float))
    return {
        "paper": cell.paper,
        "paper_deviation": cell.deviation,
        "measured": measured,
        "difference": measured - cell.paper if compared else None,
        "deviation": statistics.stdev(values) if several else None,
        "seeds": {str(seed): value for seed, value in seeds.items()},
    }


def _text(paper: Any, paper_deviation: Any, measured: Any, difference: Any, deviation: Any, seeds: Any) -> str:
    """Format a cell: the measured figure, and in brackets the paper's figure and the difference of scores."""
    if paper is None:
        return _figure(measured, deviation)
    more = f", {100 * difference:+.2f}" if isinstance(difference, float) else ""
    return f"{_figure(measured, deviation)} ({_figure(paper, paper_deviation)}{more})"


def _figure(value: float | str | None, deviation: float | None) -> str:
    """Format a score (float) × 100 ± its deviation, a count (int), a text, or None as "-"."""
    if isinstance(value, float):
        return f"{100 * value:.2f}" + (f" ± {100 * deviation:.2f}" if deviation is not None else "")
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else value
