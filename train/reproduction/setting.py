"""What all rows of a table share: its folder, the files that it reads, and the options of `train.ddp` for a row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from train.config.run import WITH_SYNONYMS, Run, defaults, make_run
from train.encoder.encoder import is_roberta, load_config
from train.evaluation.senteval_files import downstream_folder
from train.reproduction.options import Request
from train.tables.kind import BACK_TRANSLATION, PARAPHRASE, ROBERTA, Trained
from una_fast.errors import InputError

CORPORA = ("wiki1m_for_simcse.txt", "wiki1m_for_simcse.txt.gz")  # as train.download lays it out
OWN = {PARAPHRASE: "paraphrases", BACK_TRANSLATION: "back_translations"}  # kind of text: the option for a file
PAPER = {"surface": "lower", "keep_punctuation": False}  # of all tables, whatever train.ddp's defaults are
RADIUS = 4000  # the paper's, 1 % of its vocabulary; another corpus gets train.ddp's default, which is 1 % too


@dataclass(frozen=True)
class Setting:
    """What all rows of a request's table share."""

    request: Request

    @property
    def output(self) -> Path:
        """The folder of --output."""
        return Path(self.request.given["output"])

    @cached_property
    def downstream(self) -> Path:
        """SentEval's `downstream` folder."""
        return downstream_folder(self.request.paper.data or None)

    @cached_property
    def corpus(self) -> tuple[str, ...]:
        """The files of sentences.

        Raises:
            InputError: none was given, and the data hold no corpus of the paper.
        """
        if given := self.request.given.get("corpus"):
            return tuple(given)
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
        given = PAPER | {name: value for name, value in self.request.given.items() if name != "paraphrases"}
        return given if {"corpus", "radius", "window"} & {*given} else {**given, "radius": RADIUS}

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of every run."""
        return self.request.given.get("seeds") or self.request.table.seeds

    def texts_file(self, kind: str) -> Path:
        """The file of a kind of texts: the user's own, or the one that train.generate writes into --output."""
        paper, given = self.request.paper, self.request.given
        own = given.get("paraphrases", "") if kind == PARAPHRASE else paper.back_translations
        return Path(own) if own else self.output / "texts" / f"{kind}.txt"

    def is_own(self, kind: str) -> bool:
        """True if the user brings the file of a kind of texts."""
        return self.texts_file(kind).parent != self.output / "texts"

    def model_of(self, name: str) -> str:
        """The encoder that stands for one that the paper names: --model, if it is given."""
        return self.request.given.get("model") or name

    def has_place_for(self, name: str) -> bool:
        """False for rows of BERT if --model is a RoBERTa, and the other way round: they would be the same runs."""
        return not self.request.given.get("model") or self._given_is_roberta == (name == ROBERTA)

    @cached_property
    def _given_is_roberta(self) -> bool:
        given = self.request.given
        return is_roberta(load_config(given["model"], 0.0, given.get("trust_remote_code", False)))

    def folder_of(self, source: Trained) -> Path:
        """The folder of a run, the same in all tables; named by encoder, texts and settings not at their default."""
        usual = defaults() | self.base
        unusual = [f"{name}-{value}" for name, value in source.settings if value != usual[name]]
        name = "_".join([_short(self.model_of(source.model)), *filter(None, [source.texts]), *unusual])
        return self.output / "runs" / name

    def run_of(self, source: Trained, seeds: tuple[int, ...], scored: bool) -> Run:
        """The run of a row. scored: on the STS tasks too, not on the dev set alone."""
        values = self.base | dict(source.settings)
        if values.get("positives") not in WITH_SYNONYMS:  # a run with other positives refuses --synonyms
            values.pop("synonyms", None)
        values |= {"model": self.model_of(source.model), "corpus": self.corpus, "seeds": seeds}
        values |= {"output": str(self.folder_of(source)), "paraphrases": "", "index": str(self.index_of(source.texts))}
        if source.texts:
            values["paraphrases"] = str(self.texts_file(source.texts))
        if not values.get("dev"):
            values["dev"] = str(self.downstream / "STS" / "STSBenchmark" / "sts-dev.csv")
        return make_run(values | ({"evaluate": str(self.downstream)} if scored else {}))

    def index_of(self, texts: str = "") -> Path:
        """The folder of the index of the corpus, or of the corpus and a kind of texts."""
        return self.output / ("index" if not texts else f"index-{texts}")


def _short(model: str) -> str:
    """The last part of a model's name or folder."""
    return Path(model).resolve().name if Path(model).exists() else model.rpartition("/")[2]
