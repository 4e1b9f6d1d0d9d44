"""Writes a table of measured scores as JSON, Markdown, CSV, LaTeX, or as the figure of a curve."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.paper.tables import AVERAGE, DEV, Cell, Scores, Source
from bench.report import table
from train.evaluation.tasks.registry import TASKS
from train.report.runs import STS_AVERAGE
from una_fast.imports import naming_extras
from una_fast.storage.files import write_file, write_json

if TYPE_CHECKING:
    from bench.paper.request import Request
    from bench.paper.works import Work

TITLES = {AVERAGE: "Avg.", DEV: "STS-B dev"} | {row.name: row.short for row in TASKS.values() if row.short}
NOTE = "Measured ± deviation over seeds, in brackets the paper's figure and the difference; scores × 100."
LATEX = str.maketrans({character: f"\\{character}" for character in "&%#_$"} | {"±": r"$\pm$"})
FIXED: Any = {"svg.hashsalt": "una_fast", "svg.fonttype": "none", "font.size": 9}  # equal figures give equal bytes
FIGURES = ("paper", "paper_deviation", "measured", "difference", "deviation", "seeds")  # of a cell, in table.json
IN_CSV = ("paper", "paper_deviation", "measured", "deviation", "difference")


class Table:
    """The table of a request, with the scores so far.

    Attributes:
        about: the entries of table.json except "rows". Every form shows its "notes".
        rows: by row and column, the FIGURES of a cell. Scores are fractions; missing figures are None.
    """

    def __init__(self, request: Request, cells: Sequence[Cell], works: Mapping[Source, Work]) -> None:
        """works: what measures each source; a cell whose source has no work has no score."""
        self.about, self._given, self._folder = request.about(cells), request.given, request.output
        self.about["notes"] += dict.fromkeys(note for work in works.values() for note in work.notes())
        scores = {source: work.scores() for source, work in works.items()}
        self.rows: dict[str, dict[str, dict[str, Any]]] = {}
        for cell in cells:
            self.rows.setdefault(cell.row, {})[cell.column] = _figures(cell, scores.get(cell.source, {}))

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [*next(iter(self.rows.values()))]

    def save(self) -> None:
        """Write table.json and table.md, both also under the table's name in tables/, and the forms of the request."""
        rows = [
            {"name": label} | {name: {column: one[name] for column, one in row.items()} for name in FIGURES}
            for label, row in self.rows.items()
        ]
        for stem in (f"tables/{self.about['table']}", "table"):
            write_json(self._folder / f"{stem}.json", {**self.about, "rows": rows})
            write_file(self._folder / f"{stem}.md", self.markdown() + "\n")
        for name, form in (("csv", self.csv), ("latex", self.latex), ("svg", self.svg)):
            if file := self._given.get(name):
                write_file(Path(file), form())

    def markdown(self) -> str:
        """Return the title, the table, and notes on encoders, variant and scores, as Markdown."""
        about = self.about
        encoders = f"Encoders: {', '.join(about['models'])}. " if about["models"] else ""
        notes = [f"{encoders}Negatives: --variant {about['variant']}.", NOTE, *about["notes"]]
        head, *rows = self._texts()
        return "\n\n".join([f"Table {about['number']}: {about['title']}", table(head, rows), *notes])

    def csv(self) -> str:
        """Return the table as CSV, with one line per cell. Scores are fractions. The last column repeats the notes."""
        file, notes = io.StringIO(), " ".join(self.about["notes"])
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["row", "column", *IN_CSV, "seeds", "notes"])
        for label, row in self.rows.items():
            for column, one in row.items():
                writer.writerow([label, column, *(one[name] for name in IN_CSV), " ".join(one["seeds"]), notes])
        return file.getvalue()

    def latex(self) -> str:
        """Return a LaTeX tabular for the package booktabs, with the figures and notes of `markdown`."""
        head, *rows = (" & ".join(text.translate(LATEX) for text in texts) + r" \\" for texts in self._texts())
        columns = "l" + "r" * len(self.columns)
        notes = [rf"\par\footnotesize {note.translate(LATEX)}" for note in self.about["notes"]]
        start = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule"]
        return "\n".join([*start, *rows, r"\bottomrule", r"\end{tabular}", *notes, ""])

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
                    scores = {float(label): row[column][name] for label, row in self.rows.items() if row[column][name]}
                    x = sorted(scores)
                    y = [100 * scores[value] for value in x]
                    axes.plot(x, y, style, color=f"C{number}", label=f"{column}, {name}", linewidth=1.2)
            axes.set(xlabel=self.about["curve"], ylabel="STS-B dev x 100")
            axes.legend(fontsize=7)
            figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()

    def _texts(self) -> list[list[str]]:
        """Return the header and the rows as texts."""
        head = [self.about["curve"], *(TITLES.get(column, column) for column in self.columns)]
        return [head, *([label, *map(_text, row.values())] for label, row in self.rows.items())]


def _figures(cell: Cell, scores: Scores) -> dict[str, Any]:
    """Return the FIGURES of a cell. "measured" is a mean over seeds, "deviation" the sample's (n - 1)."""
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


def _text(one: Mapping[str, Any]) -> str:
    """Format the FIGURES of a cell: the measured one, and in brackets the paper's and the difference of scores."""
    measured = _score(one["measured"], one["deviation"])
    if one["paper"] is None:
        return measured
    difference = f", {100 * one['difference']:+.2f}" if isinstance(one["difference"], float) else ""
    return f"{measured} ({_score(one['paper'], one['paper_deviation'])}{difference})"


def _score(value: float | str | None, deviation: float | None) -> str:
    """Format a score (float) × 100 ± its deviation, a count (int), a text, or None as "-"."""
    if isinstance(value, float):
        return f"{100 * value:.2f}" + (f" ± {100 * deviation:.2f}" if deviation is not None else "")
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else value
