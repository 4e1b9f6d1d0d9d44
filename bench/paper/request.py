"""A command line -> a request: the cells that it asks for, the files that they share, and the options of each run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.paper.tables import Cell, Source, cells_of, contents
from train.config.command import Command, option, options_of, words_of
from train.config.run import DEFAULTS, OPTIONS, PAPER_SETTINGS, Run, make_run
from train.evaluation.tasks.registry import downstream_folder
from una_fast.augment.registry import WITH_SYNONYMS
from una_fast.errors import InputError

# kinds of text of train.generate: the option that gives their file, and the paper's model
TEXTS = {"paraphrase": ("paraphrases", "pegasus"), "back-translation": ("back_translations", "opus-mt-fr")}
CORPORA = ("wiki1m_for_simcse.txt", "wiki1m_for_simcse.txt.gz")  # as train.download lays it out
SETTINGS = {**PAPER_SETTINGS, "precision": "fp32"}  # of every run, where they are not train.ddp's defaults
RADIUS = 4000  # the paper's, 1 % of its vocabulary; another corpus gets train.ddp's default, which is 1 % too
SET_BY_COMMAND = (
    "config",
    "demo",
    "evaluate",
    "paper",
    "seed",
    "index",
    "resume",
)  # options of train.ddp that this command sets itself
NOT_THE_PAPER_S = ("model", "corpus", "max_steps", "epochs", "batch_size")  # where given, a note says so


@dataclass(frozen=True)
class Paper:
    """Table.

    The options of the further headings are options of train.ddp. They hold for all rows, except where a row says
    otherwise: --alpha does nothing for the rows of the table of alpha.
    """

    table: str = option(
        "",
        choices={name: f"table {table['number']}, {table['title']}" for name, table in contents().items()},
        positional=True,
        metavar="TABLE",
    )
    """table to make"""
    data: str = option("", metavar="FOLDER")
    """folder that holds senteval/, and corpora/ if --corpus is not given; default UNA_FAST_DATA"""
    rows: str = option("", metavar="NAME,NAME")
    """rows to do, by their names with commas between; default: all"""
    columns: str = option("", metavar="NAME,NAME")
    """columns to do, by their names as in table.json; default: all"""
    back_translations: str = option("", metavar="FILE")
    """file whose line i is the back-translation of the corpus' line i, as train.generate writes it"""
    dry_run: bool = option(False)
    """list the commands that would run, and run none of them"""


@dataclass(frozen=True)
class Request:
    """A call of the command.

    Attributes:
        seeds: of every run, the user's or the paper's.
        given: by name the options that were given, the command's own and those of `train.ddp`.
        downstream: SentEval's folder of that name.
        corpus: the files of sentences.
    """

    table: str
    output: Path
    seeds: tuple[int, ...]
    given: dict[str, Any]
    downstream: Path
    corpus: tuple[str, ...]

    @property
    def base(self) -> dict[str, Any]:
        """The options of every run, by name: the user's, and the paper's that differ from train.ddp's defaults."""
        given = {name: value for name, value in self.given.items() if name not in {"paraphrases", *options_of(Paper)}}
        return SETTINGS | ({} if {"corpus", "radius"} & {*given} else {"radius": RADIUS}) | given

    def run_of(self, source: Source, seeds: tuple[int, ...], scored: bool) -> Run:
        """The run of a source. scored: on the STS tasks too, not on the dev set alone."""
        values = self.base | dict(source.options)
        if values.get("positives") not in WITH_SYNONYMS:  # a run with other positives refuses --synonyms
            values.pop("synonyms", None)
        values |= {"model": source.name, "corpus": self.corpus, "seeds": seeds, "output": str(self._folder_of(source))}
        values["index"] = str(self.output / (f"index-{source.texts}" if source.texts else "index"))
        values["paraphrases"] = self._texts(source.texts) if source.texts else ""
        values["dev"] = values.get("dev") or str(self.downstream / "STS" / "STSBenchmark" / "sts-dev.csv")
        return make_run(values | ({"evaluate": str(self.downstream)} if scored else {}))

    def _texts(self, kind: str) -> str:
        """The user's file of a kind of texts. InputError if there is none; it says how to make one."""
        name, preset = TEXTS[kind]
        file, flag = self.given.get(name), f"--{name.replace('_', '-')}"
        if not file:
            raise InputError(
                f"{flag} is missing: rows of this table train with a {kind} of every sentence: write one with "
                f"`python -m train.generate {kind} --model {preset} --corpus {' '.join(self.corpus)} "
                "--output FILE.txt`, or choose --rows or --columns without them"
            )
        if not Path(file).exists():
            raise InputError(f"{flag} {file}: there is no such file")
        return file

    def _folder_of(self, source: Source) -> Path:
        """The folder of a run, the same in all tables; named by encoder, texts and options not at their default."""
        usual = DEFAULTS | self.base
        unusual = [f"{name}-{value}" for name, value in source.options if value != usual[name]]
        names = [Path(source.name).resolve().name, *filter(None, [source.texts]), *unusual]
        return self.output / "runs" / "_".join(names)

    def cells(self) -> list[Cell]:
        """The cells that --rows and --columns name. InputError if there is no such row or column."""
        cells = cells_of(self.table, self.seeds, self.given.get("model", ""))
        for part in ("row", "column"):
            names = dict.fromkeys(getattr(cell, part) for cell in cells)
            wanted = [name.strip() for name in self.given.get(f"{part}s", "").split(",") if name.strip()]
            for name in wanted:
                if name not in names:
                    raise InputError(f"--{part}s: the table has no {name!r}: choose from {', '.join(names)}")
            cells = [cell for cell in cells if not wanted or getattr(cell, part) in wanted]
        return cells

    def about(self) -> dict[str, Any]:
        """What table.json says besides its rows."""
        table = contents()[self.table]
        changed = words_of([OPTIONS[name] for name in NOT_THE_PAPER_S if name in self.given], self.given)
        return {
            "table": self.table,
            **{name: table.get(name, "") for name in ("number", "title", "curve")},
            "seeds": self.seeds,
            "note": f"Measured with {shlex.join(changed)}, which the paper's figures are not." if changed else "",
        }


def read_request(words: Sequence[str], prog: str) -> Request:
    """The request of a command line.

    Raises:
        InputError: no such table, an unknown option, a value that is missing or out of range, no corpus.
    """
    taken = {key: one for key, one in OPTIONS.items() if key not in SET_BY_COMMAND}
    own = options_of(Paper)
    given = Command(prog, "A table of the paper, with its figures beside what is measured.", own | taken).given(words)
    name = given.pop("table", "")
    if not name:
        raise InputError(f"TABLE is missing: choose from {', '.join(own['table'].choices)}")
    if not given.get("output"):
        raise InputError("--output is missing: give the folder of runs and tables")
    downstream = downstream_folder(given.get("data") or None)
    corpora = downstream.parents[1] / "corpora"
    corpus = given.get("corpus") or next(((str(corpora / one),) for one in CORPORA if (corpora / one).is_file()), ())
    if not corpus:
        raise InputError(
            f"{corpora} holds no {CORPORA[0]}: give --corpus FILE, or fetch the paper's with "
            f"`python -m train.download --to {corpora.parent} --only wiki`"
        )
    seeds = given.get("seeds") or tuple(contents()[name].get("seeds", [42]))
    return Request(name, Path(given["output"]), seeds, given, downstream, corpus)
