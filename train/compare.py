"""Does it help on one's own text? ``una-fast compare --model M --corpus FILE --output FOLDER``.

Trains the model without hard negatives, with UNA as the paper's code uses it, with the recommended settings, and with
those that teach near-misses to an encoder trained for similarity, on the same sentences in the same order, once a seed;
scores every encoder; and pairs the differences by seed. A command that was stopped goes on when it is given again.

OUTPUT/compare.json   scores by condition and seed, and the differences with their intervals
OUTPUT/compare.html   the same with pictures, and the answer
OUTPUT/CONDITION/     the runs of a condition, a folder each seed, as `train.ddp --seeds` leaves them
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import una_fast
from train.config.command import Parser, run_command
from train.config.options import option, options_of
from train.config.run import ENCODER, FILES, NEAR_MISS_SETTINGS, PAPER_SETTINGS, WORDS, Run, make_run, reading_arguments
from train.encoder.pooling import AUTO, OF_TRAINING
from train.evaluation.files import read_columns
from train.record.folder import (
    COMPARISON,
    RUNS,
    OutputFolder,
    has_content,
    is_own,
    read_mark,
    write_json,
    write_once,
    write_page,
)
from train.report.runs import STS_AVERAGE, Group, find_runs, kept_start, title
from train.report.runs import differences as differences_of
from una_fast.errors import InputError
from una_fast.imports import import_extra
from una_fast.text_table import aligned

REFERENCE = "none"
CONDITIONS: dict[str, dict[str, Any]] = {  # options of train.ddp
    REFERENCE: {"augment": "none"},
    "paper": {"augment": "una", **PAPER_SETTINGS},
    "recommended": {"augment": "una"},
    "near-misses": {"augment": "una", **NEAR_MISS_SETTINGS},
}
PROBE = "probe_distance"
TITLES = {  # the answer is about the first score that was measured
    STS_AVERAGE: "the STS average",
    "stsb_dev": "the dev score",
    PROBE: "the probe's distance of near-misses",
}
N_PROBED = 1000  # sentences of the corpus


@dataclass(frozen=True)
class Comparing:
    """What is compared."""

    corpus: str = option(
        "",
        "file of your text, one sentence a line or row; with --pairs the pairs' sentences by default",
        metavar="FILE",
    )
    output: str = option(
        "", "folder of the runs and of the page; the same command goes on with it", required=True, metavar="FOLDER"
    )
    pairs: str = option(
        "", "lines of sentence<TAB>paraphrase, which are the anchors and positives in place of --corpus", metavar="FILE"
    )
    dev: str = option("", "scored pairs that choose best/: lines of score<TAB>sentence<TAB>sentence", metavar="FILE")
    data: str = option(
        "",
        "folder with senteval/ and near_miss/, to score STS and near-misses; default: UNA_FAST_DATA, if it is set",
        metavar="FOLDER",
    )
    seeds: tuple[int, ...] = option((42, 0, 1), "seeds: a run of each condition for each", least=0, metavar="N,N,...")
    max_steps: int = option(320, "steps of a run, if the text has as many batches", least=1)
    batch_size: int = option(64, "sentences in a step", least=2)
    learning_rate: float = option(3e-5, "learning rate of AdamW, which falls to 0", above=0)
    precision: str = option("fp32", "number format of the encoder's arithmetic", choices=("fp32", "bf16", "fp16"))
    device: str = option("auto", "where to train", choices=("auto", "cpu", "cuda"))


def main(arguments: Sequence[str] | None = None, prog: str = "python -m train.compare") -> int:
    """Run the command; the exit code."""
    return run_command(lambda: _run(arguments, prog), "train")


OPTIONS = {**options_of(Run, FILES, WORDS, ENCODER), **options_of(Comparing)}


def _run(arguments: Sequence[str] | None, prog: str) -> int:
    about = "Train with and without hard negatives on your text, and say whether they help."
    asked = Parser(prog, about, OPTIONS).checked(arguments)
    if not asked["corpus"] and not asked["pairs"]:
        raise InputError(f"--corpus is missing: give the {OPTIONS['corpus'].help}")
    asked["data"] = asked["data"] or os.environ.get("UNA_FAST_DATA", "")
    for package in ("jinja2", "plotly"):  # for the page; missed now, not after the training
        import_extra(package)
    output = Path(asked["output"])
    settings = {name: list(value) if isinstance(value, tuple) else value for name, value in asked.items()}
    del settings["output"]  # which may be moved, or named in another way
    if resume := is_own(output, COMPARISON):
        begun = read_mark(output)["settings"]
        if changed := [name for name in settings if begun.get(name) != settings[name]]:
            raise InputError(
                f"--output {output}: was begun with another {OPTIONS[changed[0]].flag}: choose a new folder"
            )
    with OutputFolder(output, COMPARISON, resume, settings):
        sides = _sides(Path(asked["pairs"]), output) if asked["pairs"] else {}
        for path, content in sides.items():
            write_once(path, content)
        asked |= {path.stem: str(path) for path in sides}
        try:
            code = next((code for name in CONDITIONS if (code := _train(asked, name))), 0)
        except InputError:
            # a refused start leaves no files
            if not resume and not any((output / name).exists() for name in CONDITIONS):
                for path in [path for path, content in sides.items() if has_content(path, content)]:
                    path.unlink()
            raise
        return code or _conclude(asked, settings)


def _sides(pairs: Path, output: Path) -> dict[Path, bytes]:
    """The files of anchors and of positives that pairs become, named as the options of `train.ddp` that take them."""
    rows = [pair for _, pair in read_columns(pairs, (0, 1))]
    if not rows:
        raise InputError(f"{pairs}: holds no pairs; write one sentence<TAB>paraphrase a line")
    files = (output / f"{name}.txt" for name in ("corpus", "paraphrases"))
    sides = ("".join(f"{text}\n" for text in side).encode() for side in zip(*rows, strict=True))
    return dict(zip(files, sides, strict=True))


def _train(asked: Mapping[str, Any], condition: str) -> int:
    """Train and score all seeds of a condition; those that are done stay. Returns the exit code of `train_seeds`."""
    # imported late: --help and errors of the command line should not wait for torch
    from train.launch.seeds import train_seeds

    folder, known = Path(asked["output"]), options_of(Run)
    values = {name: value for name, value in asked.items() if name in known} | CONDITIONS[condition]
    values |= {"output": str(folder / condition), "index": str(folder / "index"), "schedule": "linear"}
    values |= {"evaluate": asked["data"], "tasks": "sts,near-miss", "resume": is_own(folder / condition, RUNS)}
    sys.stderr.write(f"--- {condition} ---\n")
    return train_seeds(make_run(values))


def _conclude(asked: Mapping[str, Any], settings: Mapping[str, Any]) -> int:
    """Pair the scores by seed, write compare.json and compare.html, and print the answer."""
    from train.report.page import make_page

    output, distance_of = Path(asked["output"]), _probes(asked)
    runs = find_runs([output / name for name in CONDITIONS])
    probed = [replace(run, scores={**run.scores, PROBE: distance_of(run.folder / "best")}) for run in runs]
    groups = [Group(name, [run for run in probed if run.owner.name == name]) for name in CONDITIONS]
    scores = {group.label: {str(run.seed): run.scores for run in group.runs} for group in groups}
    paired = {group.label: differences_of(group, groups[0]) for group in groups[1:]}
    differences = {name: {score: one._asdict() for score, one in found.items()} for name, found in paired.items()}
    start = {PROBE: distance_of(asked["model"], OF_TRAINING.get(asked["pooling"], AUTO))}
    lines = [answer(name, found) for name, found in differences.items()]
    lines += filter(None, [kept_start(runs)])
    content = {"settings": dict(settings), "conditions": CONDITIONS, "before": start, "scores": scores}
    write_json(output / "compare.json", content | {"differences": differences, "answer": lines})
    write_page(output / "compare.html", make_page(runs, output / REFERENCE, lines))
    sys.stdout.write(f"{table(differences)}\n\n" + "".join(f"{line}\n" for line in lines))
    sys.stdout.write(f"{output / 'compare.html'} has pictures, {output / 'compare.json'} all figures\n")
    return 0


def _probes(asked: Mapping[str, Any]) -> Callable[..., float]:
    """A function from an encoder's folder or name, and its pooling, to the probe's distance on the corpus."""
    from train.evaluation.model import load_model
    from train.evaluation.scoring import embed

    words = {name: asked[name] for name in options_of(Run, WORDS)}
    index = una_fast.build_index(asked["corpus"], **words, **reading_arguments(asked))

    def distance(name: str | Path, pooling: str = AUTO) -> float:
        model = load_model(str(name), pooling, device=asked["device"], trust=asked["trust_remote_code"])
        return una_fast.probe(lambda texts: embed(texts, model, model.max_length), index, N_PROBED).distance

    return distance


def answer(name: str, differences: Mapping[str, Mapping[str, float]]) -> str:
    """The comparison of a condition with the reference in one sentence."""
    score = next(score for score in TITLES if score in differences)
    found = differences[score]
    change = f"{TITLES[score]} changes by {100 * found['difference']:+.2f} points"
    if found["n"] < 2:
        return f"{name}: {change} with one seed, which tells nothing: give --seeds 42,0,1"
    interval = f"95 % interval {100 * found['low']:+.2f} to {100 * found['high']:+.2f}, {found['n']} seeds"
    if score == PROBE:  # its near-misses are made like the negatives
        verdict = "which does not say whether the encoder is better: give --dev FILE or --data FOLDER"
    else:
        verdict = "they help" if found["low"] > 0 else "they harm" if found["high"] < 0 else "no difference can be told"
    return f"{name}: with hard negatives {change} ({interval}): {verdict}."


def table(differences: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """All scores x 100: without, with, difference and interval, for each condition."""
    rows = [["condition", "score", REFERENCE, "with", "difference", "95 % interval"]]
    for name, of_score in differences.items():
        for score, one in of_score.items():
            figures = [f"{100 * one[part]:.2f}" for part in ("without", "with_it")]
            interval = f"{100 * one['low']:+.2f} to {100 * one['high']:+.2f}" if one["n"] > 1 else ""
            rows.append([name, title(score), *figures, f"{100 * one['difference']:+.2f}", interval])
    return "\n".join(aligned(rows, left=(0, 1)))


if __name__ == "__main__":
    sys.exit(main())
