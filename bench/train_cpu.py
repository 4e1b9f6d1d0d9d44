"""Time of a training step on this CPU, beside the released code's step and sentence-transformers' trainer.

``python -m bench.train_cpu --corpus FILE --model FOLDER --released FOLDER``: the released settings (batch 64, two
views, 32 tokens, dropout 0.1). Contenders take turns on the same sentences and threads; each figure is the median of
all steps. --released names a checkout of the authors' code, from which its model, tokenisation and loss are imported.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

import una_fast
from train.checkpoint import Progress
from train.config import make_run
from train.data import BatchMaker
from train.distributed import Ranks, usable_cores
from train.encoder import load_config, load_encoder, load_tokenizer, quiet
from train.losses import NEGATIVE_VIEWS
from train.prepare import Material, make_index, settle
from train.telemetry import machine, versions
from train.trainer import Trainer

RESULT = Path(__file__).parent / "results" / "train_cpu.json"
MAX_LENGTH, BATCH, ALPHA = 32, 64, 5
Step = Callable[[int], object]  # takes step number i, negatives where ALPHA divides it
clock = time.perf_counter


class Bench:
    """The corpus, its batches and what every contender starts from."""

    def __init__(self, corpus: str, model: str, folder: str) -> None:
        self.values = {"corpus": (corpus,), "model": model, "output": folder, "device": "cpu"}
        run = settle(make_run(self.values))
        self.index = make_index(run, lambda message: None)
        self.tokenizer = load_tokenizer(model)
        self.una = una_fast.Augmenter(self.index, tokenizer=self.tokenizer, n_jobs=1)
        self.plan = Material.of(run, self.index).plan(run)
        self.rows = [rows for _, _, rows in self.plan.batches()]

    def ours(self, precision: str) -> Step:
        """This project's step, the making of its batch included."""
        run = settle(make_run({**self.values, "precision": precision}))
        encoder = load_encoder(run.model, load_config(run.model, run.dropout), run.seed)
        trainer = Trainer(run, Ranks(0, 1, 0, torch.device("cpu")), encoder, self.plan, Progress(), None)
        make = BatchMaker(self.una.tokens, self.una, MAX_LENGTH, ALPHA, NEGATIVE_VIEWS["pairs"], None, 0, 1)
        return lambda i: trainer.step(make(i, 0, self.rows[i])).item()

    def batches_only(self) -> Step:
        """The making of batches alone: what the background thread does."""
        make = BatchMaker(self.una.tokens, self.una, MAX_LENGTH, ALPHA, NEGATIVE_VIEWS["pairs"], None, 0, 1)
        return lambda i: make(i, 0, self.rows[i])

    def released(self, folder: str) -> Step:
        """The released code's step as its train() writes it; making its negatives is not counted."""
        simcse, args = _released_trainer(folder, str(self.values["model"]), self.tokenizer)

        def step(i: int) -> None:
            sentences = [self.index.sentence(row) for row in self.rows[i]]
            sample = {"anchor": sentences, "positive": list(sentences)}
            if i % ALPHA == 0:
                sample["anchor_hn"] = sample["positive_hn"] = negatives[i]
            data = simcse.tokenize(sample, i)
            names = ("input_ids", "attention_mask", "token_type_ids")
            ids = [torch.cat([row[name] for row in data]).to(args.device) for name in names]
            logits, labels = simcse.simcse_unsup_loss(simcse.model(*ids))
            loss = torch.nn.functional.cross_entropy(logits, labels)
            simcse.optimizer.zero_grad()
            loss.backward()
            simcse.optimizer.step()
            loss.item()

        negatives = {i: self.una.negatives(self.rows[i]) for i in range(0, len(self.rows), ALPHA)}
        return step

    def sentence_transformers(self, precision: str, n_steps: int) -> Iterator[float]:
        """Seconds of each step of sentence-transformers' own trainer, without negatives."""
        from datasets import Dataset
        from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
        from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
        from sentence_transformers.losses import MultipleNegativesRankingLoss
        from transformers import TrainerCallback

        model = SentenceTransformer(str(self.values["model"]), device="cpu")
        model.max_seq_length = MAX_LENGTH
        texts = [self.index.sentence(row) for rows in self.rows[:n_steps] for row in rows]
        ends: list[float] = []

        class Clock(TrainerCallback):
            def on_step_end(self, *args: object, **kwargs: object) -> None:
                ends.append(clock())

        with tempfile.TemporaryDirectory() as output:
            arguments = Arguments(
                output_dir=output, per_device_train_batch_size=BATCH, max_steps=n_steps, learning_rate=3e-5,
                use_cpu=True, bf16=precision == "bf16", report_to="none", save_strategy="no", disable_tqdm=True,
            )  # fmt: skip
            pairs = Dataset.from_dict({"anchor": texts, "positive": texts})
            loss = MultipleNegativesRankingLoss(model)
            trainer = SentenceTransformerTrainer(model, arguments, pairs, loss=loss, callbacks=[Clock()])
            trainer.train()
        yield from (b - a for a, b in zip(ends, ends[1:], strict=False))


def _released_trainer(folder: str, model: str, tokenizer: object) -> tuple:
    """The authors' SimCSE object around their model, and its arguments."""
    import logging

    sys.path.insert(0, folder)
    logger = types.SimpleNamespace(logger=logging.getLogger("released"))
    sys.modules.setdefault("loguru", logger)  # type: ignore[arg-type]  # a logger is all they take from it
    from model.models import SimcseModelUnsup
    from una import SimCSE

    args = types.SimpleNamespace(
        pretrained_model=model, arch="bert", dropout=0.1, do_mlm=True, activation="tanh", pooling="cls",
        device="cpu", do_train=False, aug_every_n_steps=ALPHA, do_tf_idf=True, do_hard_negatives=True,
        max_len=MAX_LENGTH, temperature=0.05,
    )  # fmt: skip
    encoder = SimcseModelUnsup(args=args)
    optimizer = torch.optim.AdamW(encoder.parameters(), weight_decay=0.0, lr=3e-5)
    return SimCSE(args=args, model=encoder.train(), optimizer=optimizer, scheduler=None, tokenizer=tokenizer), args


def timed(step: Step, numbers: range) -> list[float]:
    """Seconds of each step."""
    seconds = []
    for i in numbers:
        begun = clock()
        step(i)
        seconds.append(clock() - begun)
    return seconds


def measure(bench: Bench, released: str | None, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds of steps without and with negatives, by contender; contenders take turns within each round."""
    steps = {
        "una_fast, fp32": bench.ours("fp32"),
        "una_fast, bf16": bench.ours("bf16"),
        "(batch alone)": bench.batches_only(),
    }
    if released:
        steps["released code, fp32"] = bench.released(released)
    for step in steps.values():
        step(1)
    found: dict[str, tuple[list[float], list[float]]] = {}
    for turn in range(rounds):
        for name, step in steps.items():
            plain, negatives = found.setdefault(name, ([], []))
            negatives += timed(step, range(ALPHA * turn, ALPHA * turn + 1))
            plain += timed(step, range(ALPHA * turn + 1, ALPHA * turn + 3))
        for precision in ("fp32", "bf16"):
            name = f"sentence-transformers, {precision}"
            found.setdefault(name, ([], []))[0].extend(bench.sentence_transformers(precision, 4))
    return found


def table(found: dict[str, tuple[list[float], list[float]]]) -> list[list[str]]:
    """Rows: contender, ms of a plain step and of one with negatives, of the released mix, sentences a second, ratio."""
    rows = []
    median = {name: [statistics.median(part) if part else None for part in parts] for name, parts in found.items()}
    base = median.get("released code, fp32")
    for name, (plain, negatives) in median.items():
        assert plain is not None
        mix = None if negatives is None else plain + (negatives - plain) / ALPHA
        ratio = base[0] / plain if base and base[0] and name[0] != "(" else None
        cells = [1000 * plain, negatives and 1000 * negatives, mix and 1000 * mix]
        shown = ["" if cell is None else f"{cell:,.1f}" for cell in cells]
        rows.append([name, *shown, f"{BATCH / plain:,.0f}", "" if ratio is None else f"{ratio:.2f}"])
    return rows


COLUMNS = [
    "contender",
    "plain step, ms",
    "with negatives, ms",
    "mean at alpha 5, ms",
    "sentences/s, plain",
    "released / it",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--model", required=True, help="folder of a BERT encoder")
    parser.add_argument("--released", help="checkout of the authors' code")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="for a busy machine: one thread, processor time",
    )
    options = parser.parse_args()
    quiet()
    if options.processor_time:
        global clock
        clock = time.process_time
    torch.set_num_threads(1 if options.processor_time else usable_cores())
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Bench(options.corpus, options.model, folder), options.released, options.rounds)
    rows = table(found)
    for row in [COLUMNS, *rows]:
        print("".join(f"{cell:<28}" if i == 0 else f"{cell:>22}" for i, cell in enumerate(row)))
    how = "processor time of one thread" if options.processor_time else f"{usable_cores()} threads"
    note = f"MiniLM-L6, batch {BATCH}, two views of {MAX_LENGTH} tokens at most, dropout 0.1; {how}; medians."
    about = ", ".join(f"{name} {value}" for name, value in {**machine(), **versions()}.items())
    result = {"title": "A training step on the CPU", "columns": COLUMNS, "rows": rows, "machine": about, "note": note}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
