"""Compare training's dev evaluation, its score and time, with the released code's on the same model and pairs.

    python -m bench.parity.compare_dev --released UNA --model FOLDER --dev sts-dev.csv [--threads 2] [--repeats 3]

`--released` is a checkout of ClaudiaShu/UNA: its data set, its model and its `evaluate` run unchanged, with every
sentence padded to 32 tokens and 256 pairs a batch. Only its logger and its augmentation, which evaluation does not use,
are replaced by stand-ins. Neither time includes tokenising.
"""

import argparse
import importlib
import statistics
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import torch
from torch.utils.data import DataLoader

from train.encoder.encoder import load_encoder
from train.encoder.pretrained import load_tokenizer
from train.evaluation.model import PairScorer
from train.evaluation.tasks.sts import load_dev
from una_fast.errors import InputError


class Silent:
    """Stands in for a logger."""

    def __getattr__(self, name: str) -> Callable:
        return lambda *args, **kwargs: None


def released_evaluation(folder: Path, model: str, dev: Path) -> Callable[[], float]:
    """The released code's dev evaluation, ready to be called."""
    if not (folder / "una.py").is_file():
        raise InputError(f"--released {folder}: holds no una.py")
    sys.path.insert(0, str(folder))
    for name, content in (("loguru", {"logger": Silent()}), ("function", {}), ("function.tfidf_una", {})):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(content)
    args = types.SimpleNamespace(
        pretrained_model=model,
        arch="bert",
        dropout=0.1,
        activation="tanh",
        do_mlm=False,
        pooling="cls",
        max_len=32,
        dev_file=str(dev),
        device=torch.device("cpu"),
        do_train=False,
    )
    tokenizer = load_tokenizer(model)
    pairs = importlib.import_module("data.dataset").SimcseEvalDataset(args=args, eval_mode="eval", tokenizer=tokenizer)
    network = importlib.import_module("model.models").SimcseModelUnsup(args=args)
    method = importlib.import_module("una").SimCSE(
        args=args, model=network, optimizer=None, scheduler=None, tokenizer=tokenizer
    )
    loader = DataLoader(pairs, batch_size=256, shuffle=True)
    return lambda: float(method.evaluate(network, loader))


def our_evaluation(model: str, dev: Path, precision: str = "fp32") -> Callable[[], float]:
    """Ours as training calls it, on [CLS]."""
    encoder = load_encoder(model, 0.1, seed=0, pooling="cls").eval()
    tokenizer = load_tokenizer(model)
    scorer = PairScorer(load_dev(dev), tokenizer, max_length=32)

    def encode(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            return encoder.embed(batch)

    def evaluate() -> float:
        return scorer(encode, threads=None)

    return evaluate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--released", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    try:
        kinds = {
            "released code": released_evaluation(options.released, options.model, options.dev),
            "ours, fp32": our_evaluation(options.model, options.dev),
            "ours, bf16": our_evaluation(options.model, options.dev, "bf16"),
        }
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    for _ in range(options.repeats):  # in turn, so that other load slows down all alike
        for name, evaluate in kinds.items():
            begun = time.perf_counter(), time.process_time()
            score = evaluate()
            seconds[name].append((time.perf_counter() - begun[0], time.process_time() - begun[1]))
            print(f"{name:<14} Spearman {score:.5f}  {seconds[name][-1][0]:.2f} s", file=sys.stderr)
    print(f"{'':<14}{'wall s':>10}{'times':>8}{'cores s':>10}{'times':>8}   (medians of {options.repeats})")
    wall, cores = zip(*(map(statistics.median, zip(*times, strict=True)) for times in seconds.values()), strict=True)
    for name, a, b in zip(kinds, wall, cores, strict=True):
        print(f"{name:<14}{a:>10.2f}{wall[0] / a:>8.2f}{b:>10.2f}{cores[0] / b:>8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
