"""Parses the command line into a request: the cells to measure, the files they share, and the options of each run."""

from __future__ import annotations

import argparse
import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.paper.tables import NEGATIVE, RUN, Cell, Source, cells_of, contents
from train.config import DEFAULTS, OPTIONS, PAPER_SETTINGS, Run, make_run
from train.evaluation.tasks.registry import downstream_folder
from una_fast.augment.registry import WITH_SYNONYMS
from una_fast.command import Command, arguments_of, option, options_of
from una_fast.errors import InputError

# kinds of text of train.generate: the option that gives their file, and the paper's model
TEXTS = {"paraphrase": ("paraphrases", "pegasus"), "back-translation": ("back_translations", "opus-mt-fr")}
CORPORA = ("wiki1m_for_simcse.txt", "wiki1m_for_simcse.txt.gz")  # the names that train.download gives
SETTINGS = {**PAPER_SETTINGS, "precision": "fp32"}  # options of every run that differ from train.ddp's defaults
RADIUS = 4000  # the paper's, 1% of its vocabulary; another corpus gets train.ddp's default, which is also 1%
# options of train.ddp that this command sets itself
SET_BY_COMMAND = ("config", "demo", "evaluate", "paper", "near_misses", "seed", "index", "resume")
NOT_THE_PAPER_S = ("model", "corpus", "max_steps", "epochs", "batch_size", "dev")  # if one is given, a note says so


@dataclass(frozen=True)
class Paper(Run):
    """Table.

    All other options are those of train.ddp. They apply to all rows, but a row keeps its own value of the option that
    it varies: --alpha has no effect on the table of alpha.
    """

    # fmt: off
    table: str = option("table to make", "", positional=True, metavar="TABLE",
                        choices={name: f"table {table['number']}, {table['title']}"
                                 for name, table in contents().items()})
    data: str = option("folder that contains senteval/, and corpora/ if --corpus is not given; default UNA_FAST_DATA",
                       "", metavar="FOLDER")
    rows: str = option("names of the rows to measure, comma-separated; default: all", "", metavar="NAME,NAME")
    columns: str = option("names of the columns to measure, as in table.json; default: all", "", metavar="NAME,NAME")
    back_translations: str = option("file whose line i is the back-translation of line i of the corpus, as "
                                    "train.generate writes it", "", metavar="FILE")
    csv: str = option("file for the figures as CSV, one line per cell", "", metavar="FILE")
    latex: str = option("file for the table as LaTeX, for the package booktabs", "", metavar="FILE")
    svg: str = option("file for the figure of the tables alpha, beta and radius", "", metavar="FILE")
    dry_run: bool = option("list the commands that would run, without running them", False)
    # fmt: on


@dataclass(frozen=True)
class Request:
    """A parsed command line."""

    table: str
    output: Path
    seeds: tuple[int, ...]  # of every run: the user's, or if none are given, the paper's
    given: dict[str, Any]  # the values on the command line, by name of the option, of this command and of `train.ddp`
    downstream: Path  # SentEval's folder downstream/
    corpus: tuple[str, ...]  # the files of sentences
    texts: dict[str, str]  # the user's files of other texts, by kind

    @property
    def variant(self) -> str:
        """The value of --variant."""
        return self.given.get("variant", DEFAULTS["variant"])

    @property
    def base(self) -> dict[str, Any]:
        """The options of every run, by name.

        These are the options that the user gave, and the paper's values that differ from train.ddp's defaults.
        """
        given = {name: value for name, value in self.given.items() if name in OPTIONS.keys() - {"paraphrases"}}
        return SETTINGS | ({} if {"corpus", "radius"} & {*given} else {"radius": RADIUS}) | given

    def run_of(self, source: Source, seeds: tuple[int, ...], scored: bool) -> Run:
        """Return the run of a source. scored: whether to score it on the STS tasks, not only on the dev set.

        The folder of the run is the same in all tables. Its name has the encoder, the texts and the options that differ
        from those of every run.
        """
        usual, own = DEFAULTS | self.base, dict(source.options)
        unusual = [f"{name}-{value}" for name, value in own.items() if value != usual[name]]
        names = [Path(source.name).resolve().name, *filter(None, [source.texts]), *unusual]
        values = self.base | own
        if values.get("positives") not in WITH_SYNONYMS:  # with other positives, --synonyms is an error
            values.pop("synonyms", None)
        files = {
            "model": source.name,
            "corpus": self.corpus,
            "output": str(self.output / "runs" / "_".join(names)),
            "index": str(self.output / "-".join(["index", *filter(None, [source.texts])])),
            "paraphrases": self.texts.get(source.texts, ""),
            "dev": values.get("dev") or str(self.downstream / "STS" / "STSBenchmark" / "sts-dev.csv"),
            "evaluate": str(self.downstream) if scored else "",
        }
        return make_run(values | files | {"seeds": seeds})

    def lacks(self, source: Source) -> bool:
        """Whether a run needs texts that the user did not give."""
        return bool(source.texts) and source.texts not in self.texts

    def left_out(self, cells: Sequence[Cell]) -> list[str]:
        """Return a notice for each kind of texts that is missing: the rows left out, and how to make the texts.

        Raises:
            InputError: all cells need missing texts.
        """
        notices = []
        for kind, (name, preset) in TEXTS.items():
            lacking = [cell for cell in cells if cell.source.texts == kind and self.lacks(cell.source)]
            if not lacking:
                continue
            kept = {cell.row for cell in cells if cell not in lacking}
            rows = [cell.row for cell in lacking if cell.row not in kept]
            names = ", ".join(dict.fromkeys(rows or [cell.column for cell in lacking]))
            notices.append(
                f"--{name.replace('_', '-')} is missing, so these are left out: {names}. Write the file with `python "
                f"-m train.generate {kind} --model {preset} --corpus {' '.join(self.corpus)} --output FILE.txt`"
            )
        if all(self.lacks(cell.source) for cell in cells):
            raise InputError(" ".join(notices))
        return notices

    def cells(self) -> list[Cell]:
        """Return the cells that --rows and --columns name. Raises InputError for an unknown row or column."""
        cells = cells_of(self.table, self.seeds, self.given.get("model", ""))
        for part in ("row", "column"):
            names = dict.fromkeys(getattr(cell, part) for cell in cells)
            wanted = [name.strip() for name in self.given.get(f"{part}s", "").split(",") if name.strip()]
            for name in wanted:
                if name not in names:
                    raise InputError(f"--{part}s: the table has no {name!r}: choose from {', '.join(names)}")
            cells = [cell for cell in cells if not wanted or getattr(cell, part) in wanted]
        return cells

    def about(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """Return the entries of table.json except "rows"."""
        table = contents()[self.table]
        changed = arguments_of([OPTIONS[name] for name in NOT_THE_PAPER_S if name in self.given], self.given)
        notes = [f"Measured with {shlex.join(changed)}, which the paper's figures are not."] if changed else []
        if all(cell.paper is None for cell in cells):
            notes.append("The paper has no figures for these cells, so there is nothing to compare them with.")
        return {
            "table": self.table,
            **{name: table.get(name, "") for name in ("number", "title", "curve")},
            "seeds": self.seeds,
            "models": [*dict.fromkeys(cell.source.name for cell in cells if cell.source.kind == RUN)],
            "variant": self.variant,
            "notes": notes,
        }


def names_of_tables() -> str:
    """List the names of the rows and columns of each table."""
    lines = ["Names of rows and columns:"]
    for name in contents():
        for part in ("row", "column"):
            names = ", ".join(dict.fromkeys(getattr(cell, part) for cell in cells_of(name)))
            text = f"  {name}, {part}s: {names}"
            lines += textwrap.wrap(text, 100, subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines)


def read_request(words: Sequence[str], prog: str) -> Request:
    """Parse a command line into a request.

    Raises:
        InputError: an unknown table or option, a missing or invalid value, or no corpus.
    """
    options = {name: one for name, one in options_of(Paper).items() if name not in SET_BY_COMMAND}
    about = "Measure a table of the paper and show it with the paper's figures."
    command: Command[Paper] = Command(prog, about, Paper, options=options)
    command.formatter_class = argparse.RawDescriptionHelpFormatter  # keeps the line breaks of the list of names
    command.epilog = f"{names_of_tables()}\n\nRead docs/paper-tables.md."
    given = command.given(words)
    name = given.pop("table", "")
    if not name:
        raise InputError(f"TABLE is missing: choose from {', '.join(options['table'].choices)}")
    curves = [name for name, table in contents().items() if table.get("curve")]
    if given.get("svg") and name not in curves:
        raise InputError(f"--svg: the table {name} has no curve: choose from {', '.join(curves)}")
    if not given.get("output"):
        raise InputError("--output is missing: give the folder of runs and tables")
    downstream = downstream_folder(given.get("data") or None)
    corpora = downstream.parents[1] / "corpora"
    corpus = given.get("corpus") or next(((str(corpora / one),) for one in CORPORA if (corpora / one).is_file()), ())
    if not corpus and any(cell.source.kind in (RUN, NEGATIVE) for cell in cells_of(name)):
        raise InputError(
            f"{corpora} contains no {CORPORA[0]}: give --corpus FILE, or fetch the paper's with "
            f"`python -m train.download --to {corpora.parent} --only wiki`"
        )
    texts = {kind: given[option] for kind, (option, _) in TEXTS.items() if given.get(option)}
    for kind, file in texts.items():
        if not Path(file).exists():
            raise InputError(f"{options[TEXTS[kind][0]].flag} {file}: no such file")
    seeds = given.get("seeds") or tuple(contents()[name].get("seeds", [42]))
    return Request(name, Path(given["output"]), seeds, given, downstream, corpus, texts)
