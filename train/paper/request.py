"""A command line -> a request: the rows that it asks for, the files that they share, and the options of each run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from train.config.command import given_values, option_parser
from train.config.options import option, options_of
from train.config.run import WITH_SYNONYMS, Run, defaults, make_run, options
from train.evaluation.senteval_files import downstream_folder
from train.generation.options import PARAPHRASERS, TRANSLATORS
from train.paper.tables import (
    BERT,
    PARAPHRASE,
    ROBERTA,
    STS,
    Cell,
    Checkpoint,
    Row,
    Table,
    Trained,
    Untrained,
    table_of,
)
from una_fast.errors import InputError

CORPORA = ("wiki1m_for_simcse.txt", "wiki1m_for_simcse.txt.gz")  # as train.download lays it out
RADIUS = 4000  # the paper's, 1 % of its vocabulary; another corpus gets train.ddp's default, which is 1 % too
PAPERS_OWN = {"loss": "pairs", "surface": "paper", "keep_punctuation": False}  # whatever the defaults of train.ddp are
# options of train.ddp that this command sets itself, and what to give instead
SET_BY_COMMAND = {
    "demo": "give --model, --corpus and --max-steps",
    "evaluate": "give --data",
    "seed": "give --seeds",
    "index": "it lies in OUTPUT",
    "resume": "the command always goes on with what is in OUTPUT",
}


@dataclass(frozen=True)
class Paper:
    """Table.

    The options of the further headings are options of train.ddp. They hold for all rows, except where a row says
    otherwise: --alpha does nothing for the rows of the table of alpha.
    """

    data: str = option(
        "",
        "folder that holds senteval/, and corpora/ if --corpus is not given; default UNA_FAST_DATA",
        metavar="FOLDER",
    )
    rows: str = option("", "rows to do, by their names with commas between; default: all", metavar="NAME,NAME")
    columns: str = option("", "columns to do, by their names as in table.json; default: all", metavar="NAME,NAME")
    back_translations: str = option(
        "",
        "file whose line i is the back-translation of the corpus' line i; without it, train.generate writes one",
        metavar="FILE",
    )
    paraphraser: str = option(
        "pegasus",
        f"model that writes paraphrases where --paraphrases is not given: {' or '.join(PARAPHRASERS)}, or the "
        "name or folder of a seq2seq model",
        metavar="NAME_OR_FOLDER",
    )
    translator: tuple[str, ...] = option(
        ("opus-mt-fr",),
        f"{' or '.join(TRANSLATORS)}, or the names or folders of two seq2seq models, that translate forth and back",
        metavar="NAME_OR_FOLDER",
    )
    checkpoints: tuple[str, ...] = option(
        (),
        "encoders to score in the table of comparison: ROW=NAME_OR_FOLDER in the place of a row's own, NAME_OR_FOLDER "
        "in a row of its own",
        metavar="ROW=NAME_OR_FOLDER",
    )
    dry_run: bool = option(False, "list the commands that would run, and run none of them")


@dataclass(frozen=True)
class Request:
    """A call of the command: its table, its own options, and by name the options of `train.ddp` that were given."""

    table: Table
    paper: Paper
    given: dict[str, Any]

    @property
    def output(self) -> Path:
        """The folder of --output."""
        return Path(self.given["output"])

    @property
    def trust(self) -> bool:
        """Whether Python code that comes with a model may run."""
        return bool(self.given.get("trust_remote_code"))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of every run."""
        return self.given.get("seeds") or self.table.seeds

    @cached_property
    def downstream(self) -> Path:
        """SentEval's `downstream` folder."""
        return downstream_folder(self.paper.data or None)

    @cached_property
    def corpus(self) -> tuple[str, ...]:
        """The files of sentences.

        Raises:
            InputError: none was given, and the data hold no corpus of the paper.
        """
        if given := self.given.get("corpus"):
            return (given,) if isinstance(given, str) else tuple(given)
        root = self.downstream.parents[1]
        for name in CORPORA:
            if (root / "corpora" / name).is_file():
                return (str(root / "corpora" / name),)
        raise InputError(
            f"{root / 'corpora'} holds no {CORPORA[0]}: give --corpus FILE, or fetch the paper's with "
            f"`python -m train.download --to {root} --only wiki`"
        )

    @property
    def base(self) -> dict[str, Any]:
        """The options of every run, by name: the user's, and the paper's that differ from train.ddp's defaults."""
        given = {name: value for name, value in self.given.items() if name != "paraphrases"}
        own_radius = {"corpus", "radius", "window"} & {*given}
        return PAPERS_OWN | ({} if own_radius else {"radius": RADIUS}) | given

    def own_texts(self, kind: str) -> str:
        """The user's file of a kind of texts, "" if train.generate is to write it."""
        return self.given.get("paraphrases", "") if kind == PARAPHRASE else self.paper.back_translations

    def texts_file(self, kind: str) -> Path:
        """The file of a kind of texts: the user's own, or the one that train.generate writes into --output."""
        return Path(self.own_texts(kind) or self.output / "texts" / f"{kind}.txt")

    def index_of(self, texts: str = "") -> Path:
        """The folder of the index of the corpus, or of the corpus and a kind of texts."""
        return self.output / (f"index-{texts}" if texts else "index")

    def model_of(self, name: str) -> str:
        """The encoder that stands for one that the paper names: --model, if it is given."""
        return self.given.get("model") or name

    @cached_property
    def families(self) -> tuple[str, ...]:
        """The paper's encoders whose rows are done: both, or the one of the family of --model."""
        if not self.given.get("model"):
            return BERT, ROBERTA
        from train.encoder.pretrained import is_roberta, load_config  # torch takes seconds

        return (ROBERTA if is_roberta(load_config(self.given["model"], 0.0, self.trust)) else BERT,)

    def folder_of(self, source: Trained) -> Path:
        """The folder of a run, the same in all tables; named by encoder, texts and options not at their default."""
        usual, model = defaults() | self.base, self.model_of(source.model)
        short = Path(model).resolve().name if Path(model).exists() else model.rpartition("/")[2]
        unusual = [f"{name}-{value}" for name, value in source.options if value != usual[name]]
        return self.output / "runs" / "_".join([short, *filter(None, [source.texts]), *unusual])

    def run_of(self, source: Trained, seeds: tuple[int, ...], scored: bool) -> Run:
        """The run of a row. scored: on the STS tasks too, not on the dev set alone."""
        values = self.base | dict(source.options)
        if values.get("positives") not in WITH_SYNONYMS:  # a run with other positives refuses --synonyms
            values.pop("synonyms", None)
        values |= {"model": self.model_of(source.model), "corpus": self.corpus, "seeds": seeds}
        values |= {"output": str(self.folder_of(source)), "index": str(self.index_of(source.texts))}
        values["paraphrases"] = str(self.texts_file(source.texts)) if source.texts else ""
        values["dev"] = values.get("dev") or str(self.downstream / "STS" / "STSBenchmark" / "sts-dev.csv")
        return make_run(values | ({"evaluate": str(self.downstream)} if scored else {}))

    def rows(self) -> list[Row]:
        """The rows that --rows names with the columns that --columns names, for the user's encoder and seeds.

        Raises:
            InputError: no such row or column, or --checkpoints for a table without published encoders.
        """
        rows = list(self.table.rows)
        if any(row.of_one_seed for row in rows):
            rows = [*map(self.table.row_of, self.seeds), *(row for row in rows if not row.of_one_seed)]
        rows = [own for row in rows if (own := self._with_model(row))]
        rows = self._with_checkpoints(rows)
        wanted = _named("--rows", self.paper.rows, [row.name for row in rows])
        columns = _named(
            "--columns", self.paper.columns, list(dict.fromkeys(name for row in rows for name in row.cells))
        )
        return [
            Row(row.name, {name: cell for name, cell in row.cells.items() if name in columns})
            for row in rows
            if row.name in wanted
        ]

    def _with_model(self, row: Row) -> Row | None:
        """The row with --model in place of BERT or RoBERTa, or None if it would then repeat another row."""
        source = row.source
        if isinstance(source, Untrained) or source.model not in (BERT, ROBERTA):
            return row
        if source.model not in self.families:
            return None
        if isinstance(source, Checkpoint):
            return _scored_by(row, dataclasses.replace(source, model=self.model_of(source.model)))
        return row

    def _with_checkpoints(self, rows: list[Row]) -> list[Row]:
        """The rows with the user's encoders: in place of a row's own, or in new rows without figures of the paper."""
        if self.paper.checkpoints and not any(isinstance(row.source, Checkpoint) for row in self.table.rows):
            raise InputError(
                f"--checkpoints: the table {self.table.name} scores no published encoders: comparison does"
            )
        found = {row.name: row for row in rows}
        for word in self.paper.checkpoints:
            name, _, model = word.rpartition("=")
            if not name:
                cells = {score: Cell(None, Checkpoint(word), score) for score in STS}
                found[word] = Row(Path(word).name, cells)
            elif name in found and isinstance(before := found[name].source, Checkpoint):
                found[name] = _scored_by(found[name], dataclasses.replace(before, model=model))
            else:
                raise InputError(
                    f"--checkpoints {word}: there is no row {name!r} of a published encoder: name one of them"
                )
        return list(found.values())


def _scored_by(row: Row, source: Checkpoint) -> Row:
    return Row(row.name, {name: dataclasses.replace(cell, source=source) for name, cell in row.cells.items()})


def _named(flag: str, text: str, names: Sequence[str]) -> list[str]:
    """The names in the value `text` of the option `flag`; if it is empty, all `names`."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in names:
            raise InputError(f"{flag}: the table has no {name!r}: choose from {', '.join(names)}")
    return wanted or list(names)


def read_request(words: Sequence[str], prog: str) -> Request:
    """The request of a command line whose first word is the table.

    Raises:
        InputError: no such table, an unknown option, a value that is missing or out of range.
    """
    name = words[0] if words and not words[0].startswith("-") else ""
    table = table_of(name)
    about = f"Table {table.number} of the paper: {table.title}, with the paper's figures beside."
    parser = option_parser(f"{prog} {name}", about, options_of(Paper) | options(), hidden=SET_BY_COMMAND)
    given = given_values(parser, words[1:])
    values: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in given.items()}
    for taken, instead in SET_BY_COMMAND.items():
        if taken in values:
            raise InputError(f"--{taken}: train.paper sets it itself: {instead}")
    if not values.get("output"):
        raise InputError("--output is missing: give the folder of runs and tables")
    paper = Paper(**{key: values.pop(key) for key in options_of(Paper) if key in values})
    return Request(table, paper, values)
