"""What is done once before ranks start: settle the options, check all inputs, build the index, bind the tokenizer."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import una_fast
from train.config.groups import WITHOUT_NEGATIVES, Compile
from train.config.run import Run
from train.encoder.encoder import head_of, is_roberta, load_config, load_tokenizer, pooling_of, quiet
from train.encoder.modules import Modules
from train.encoder.onednn import warn_of_slow_bf16
from train.encoder.pooling import POOLINGS
from train.evaluation.tasks.sts import load_dev
from train.record.folder import INDEX, POINTER, foreign_file, is_finished, read_summary, read_written
from train.record.pointer import has_checkpoint
from train.steps.plan import Plan, usable_rows
from una_fast.augment.synonyms import open_synonyms
from una_fast.corpus.reading import Reading
from una_fast.corpus.sources import open_sources
from una_fast.corpus.word_tokenizers import tokenizer_name
from una_fast.errors import InputError, InputWarning, counted
from una_fast.index.index import Index
from una_fast.tokens.ids import TokenIds

EVALUATIONS_A_SAVE = 10  # on a GPU: it evaluates every second, and a checkpoint of BERT-base is 1.3 GB


def settle(run: Run) -> Run:
    """`run` with what depends on the machine, the model or other options made explicit.

    Raises:
        InputError: more ranks than GPUs, CUDA graphs without one, a model that is not there, no dev file,
            no data or no such task to evaluate on, no synonyms.
    """
    quiet()
    device = run.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and run.nproc > torch.cuda.device_count():
        raise InputError(
            f"--nproc {run.nproc} is above the {counted(torch.cuda.device_count(), 'GPU')} of this machine: "
            "give as many ranks as GPUs at most, or --device cpu"
        )
    if device == "cpu" and run.compile in ("graphs", "both"):
        raise InputError(f"--compile {run.compile} needs a GPU, and none is used here: choose off or layers")
    config = load_config(run.model, run.dropout, run.trust_remote_code)
    roberta = is_roberta(config)
    positions = config.max_position_embeddings - (2 if roberta else 0)  # RoBERTa's positions start behind its padding
    if run.max_length > positions:
        raise InputError(f"--max-length {run.max_length} is above the {positions} positions of the model: shorten it")
    if run.dev:
        load_dev(run.dev)
    if run.needs_synonyms:
        open_synonyms(run.synonyms or None)
    if run.evaluate:
        from train.job.score_best import check_evaluation  # scikit-learn takes a second, and few runs need it here

        check_evaluation(run)
    layout = pooling_of(run.model, run.pooling)
    _warn_of_texts(run.model, layout)
    warn_of_slow_bf16(run.precision, device)
    pooling = POOLINGS[layout.pooling].in_training
    plain_or_graphs: Compile = "graphs" if device == "cuda" else "off"
    return dataclasses.replace(
        run,
        device=device,
        compile=plain_or_graphs if run.compile == "auto" else run.compile,
        save_every=run.save_every or run.eval_every * (EVALUATIONS_A_SAVE if device == "cuda" else 1),
        augment=run.augment or ("none" if run.loss in WITHOUT_NEGATIVES else "una"),
        learning_rate=run.learning_rate or (5e-6 if roberta else 3e-5),
        pooling=pooling,
        head=head_of(pooling, run.head),
        schedule=run.schedule or ("constant" if roberta else "linear"),
        index=run.index or str(Path(run.output) / INDEX),
    )


def _warn_of_texts(model: str, layout: Modules) -> None:
    """Say what the model does to a text that training, which takes ids from the index, does not."""
    for what in filter(
        None, [layout.prompt and f"default prompt {layout.prompt!r}", layout.lower_case and "lower case"]
    ):
        warnings.warn(
            f"--model {model}: its {what} is applied in dev scores and wherever best/ is used, but not in training",
            InputWarning,
            stacklevel=3,
        )


def check_output(run: Run) -> None:
    """Refuse an output folder that holds another run or other files, or to resume where there is no checkpoint.

    A demo gives way to a new one, and so does a run that never saved a checkpoint. Nothing is removed here.
    """
    output = Path(run.output)
    if run.resume:
        if not has_checkpoint(output):
            raise InputError(f"--resume: {output} holds no checkpoint in last/: start without --resume")
        return
    earlier_demo = run.demo and read_summary(output).get("settings", {}).get("demo") is True
    saved = has_checkpoint(output) or POINTER in read_written(output)  # it may be gone, and best/ worth something
    if (saved or is_finished(output)) and not earlier_demo:
        can_go_on = has_checkpoint(output) and not is_finished(output)
        raise InputError(
            f"--output {output}: holds {'a run that can go on' if can_go_on else 'a finished run'}: "
            f"{'give --resume, ' if can_go_on else ''}choose another folder, or delete it"
        )
    if foreign := foreign_file(output):
        raise InputError(
            f"--output {output}: holds {foreign.relative_to(output)}, which no run of this program is known to have "
            "written: choose another folder"
        )


def sources(run: Run) -> list[Path]:
    """The files that the index is made from, paraphrases last."""
    # Path, not str: a str without a known extension counts as a sentence
    return [Path(path) for path in (*run.corpus, *filter(None, [run.paraphrases]))]


def paraphrase_sources(run: Run) -> int:
    """How many of the index's sources, the last ones, hold the paraphrases: a folder or a glob is several."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # of files that are left out: said where the index is made
        return len(open_sources(Path(run.paraphrases), Reading(run.column, run.quoting)))


def open_index(run: Run, corpus: Any = None) -> Index:
    """The saved index of a run, of this `corpus` if one is given; refused if its words were made otherwise."""
    tokenizer = run.word_tokenizer if ":" in run.word_tokenizer else None  # an import path: the index has no name of it
    index = una_fast.load_index(
        run.index, corpus=corpus, column=run.column, word_tokenizer=tokenizer, quoting=run.quoting
    )
    if (tokenizer is None and index.word_tokenizer != run.word_tokenizer) or index.lowercase != run.lowercase:
        raise InputError(
            f"--index {run.index}: its words were made by {tokenizer_name(index.word_tokenizer)!r} with "
            f"--{'' if index.lowercase else 'no-'}lowercase, and the run asks for {run.word_tokenizer!r} with "
            f"--{'' if run.lowercase else 'no-'}lowercase: name a new folder with --index, or give the same options"
        )
    return index


def make_index(run: Run, say: Any) -> Index:
    """The index of the corpus with the tokenizer bound to it: loaded from run.index, or built and saved there."""
    tokenizer = load_tokenizer(run.model, run.trust_remote_code)
    if not Path(run.index).exists():
        say(f"indexing {', '.join(map(str, sources(run)))}")
        index = una_fast.build_index(
            sources(run),
            word_tokenizer=run.word_tokenizer,
            lowercase=run.lowercase,
            progress=True,
            **run.reading(),
        )
        Material.of(run, index)  # refuses before anything is written
        TokenIds(index, tokenizer)
        index.save(run.index)
        index = open_index(run)
    else:
        index = open_index(run, sources(run))
    TokenIds(index, tokenizer)
    material = Material.of(run, index)
    say(material.describe())
    return index


@dataclasses.dataclass(frozen=True)
class Material:
    """What there is to train on.

    rows: int64 (n,), usable rows of the index; paraphrase_offset: row of the first paraphrase, or None.
    """

    rows: np.ndarray
    n_anchors: int
    paraphrase_offset: int | None
    blank: int
    blank_paraphrases: int
    n_terms: int

    @classmethod
    def of(cls, run: Run, index: Index) -> Material:
        """Count and check the rows of an index against the options.

        Raises:
            InputError: paraphrases of another length than the corpus, or fewer sentences than a batch.
        """
        n_anchors, offset = index.n_documents, None
        if run.paraphrases:
            own = index.sources[-paraphrase_sources(run) :]
            n_paraphrases = sum(source["n_documents"] for source in own)
            n_anchors = offset = index.n_documents - n_paraphrases
            if n_anchors != n_paraphrases:
                raise InputError(
                    f"--paraphrases {run.paraphrases}: has {counted(n_paraphrases, 'sentence')} and the corpus "
                    f"{n_anchors:,}: line i of one must be a paraphrase of line i of the other"
                )
        rows, blank, blank_paraphrases = usable_rows(index.word_ids.lengths(), n_anchors)
        if len(rows) < run.batch_size:
            raise InputError(
                f"the corpus has {counted(len(rows), 'sentence')} with words, fewer than --batch-size "
                f"{run.batch_size}: give more text or a smaller batch"
            )
        return cls(rows, n_anchors, offset, blank, blank_paraphrases, index.n_terms)

    def plan(self, run: Run) -> Plan:
        """The steps of the run."""
        return Plan(self.rows, run.batch_size, run.seed, run.epochs, run.max_steps)

    def describe(self) -> str:
        """One line for the user."""
        left_out = self.n_anchors - len(self.rows)
        note = f", {left_out:,} left out as blank" if left_out else ""
        return f"{counted(len(self.rows), 'sentence')} to train on{note}; {counted(self.n_terms, 'term')}"

    def counts(self) -> dict[str, int]:
        """For run.json."""
        return {
            "sentences": self.n_anchors,
            "trained_on": len(self.rows),
            "blank": self.blank,
            "blank_paraphrases": self.blank_paraphrases,
            "terms": self.n_terms,
        }
