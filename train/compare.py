"""Compare training with and without hard negatives: ``una-fast compare --model M --corpus FILE --output FOLDER``.

The command trains and scores an encoder for each of CONDITIONS and each seed. All conditions of a seed use the same
sentences in the same order, so each condition is compared with "none" (no negatives) seed by seed, and on retrieval
sets query by query.

OUTPUT/compare.json   scores by condition and seed, and the differences with their intervals
OUTPUT/compare.html   the same scores with charts, and a sentence on whether each condition is better than "none"
OUTPUT/CONDITION/     the runs of a condition, one folder per seed, as `train.ddp --seeds` writes them
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import una_fast
from train.config import CAPTION_SETTINGS, PAPER_SETTINGS, Run, make_run
from train.encoder.pooling import AUTO
from train.evaluation.tasks.registry import retrieval_folders
from train.record.folder import BEST, COMPARISON, DEV, INDEX, RUNS, is_own, output_folder
from train.report.runs import STS_AVERAGE, Comparison, Group, RunRecord, find_runs, score_table, unimproved_note
from una_fast.command import Command, option, options_of
from una_fast.errors import InputError, warn_user
from una_fast.imports import import_extra
from una_fast.options import Files, Words, names_of
from una_fast.storage.files import write_file, write_json
from una_fast.text_table import aligned

CUSTOM = "yours"
CONDITIONS: dict[str, dict[str, Any]] = {  # condition -> its options of train.ddp
    "none": {"augment": "none"},
    "paper": {"augment": "una", **PAPER_SETTINGS},
    "defaults": {"augment": "una"},
    "captions": {"augment": "una", **CAPTION_SETTINGS},
}
CUSTOM_OPTIONS = ("surface", "beta", "radius", "keep_words", "loss")  # if any is given, they form the condition CUSTOM
TUNED = (
    "This project tuned the condition defaults (loss, alpha and beta) on the STS tasks, and captions on a part of "
    "SugarCrepe++, both with MiniLM: their scores on these tasks are too high. The conditions none and paper were not "
    "tuned: a better --temperature and --learning-rate for none may remove a gain."
)
UNSCORED = (
    "This does not show whether the encoder is better, because the probe's near-misses are made like the negatives: "
    "give scored pairs (--dev FILE) or test data (--data FOLDER)."
)
PROBE = "probe_distance"
TITLES = {STS_AVERAGE: "the STS average", DEV: "the dev score", PROBE: "the probe's distance of near-misses"}
N_PROBED = 1000  # sentences of the index that the probe uses


@dataclass(frozen=True)
class CompareOptions(Run):
    """The options of `una-fast compare`: `output`, `data` and those of train.ddp in SHOWN."""

    output: str = option("folder for the runs and the page: a new one, or one to continue", "", "Comparison",
                         required=True, metavar="FOLDER")  # fmt: skip
    data: str = option(
        "folder with senteval/, near_miss/ and retrieval sets to score on; default UNA_FAST_DATA", "", metavar="FOLDER"
    )


DEFAULTS = {"seeds": (42, 0, 1), "max_steps": 320, "precision": "fp32"}  # defaults that differ from train.ddp's
MODEL = ("model", "pooling", "head", "trust_remote_code", "max_length", "dropout")
TRAINING = ("corpus", "paraphrases", "dev", "temperature", "batch_size", "learning_rate", "device", *DEFAULTS)
SHOWN = {"output", "data", *MODEL, *TRAINING, *CUSTOM_OPTIONS, *names_of(Files), *names_of(Words)}
OPTIONS = {name: row for name, row in options_of(CompareOptions).items() if name in SHOWN}
OPTIONS |= {name: replace(OPTIONS[name], default=value) for name, value in DEFAULTS.items()}


def conditions(options: CompareOptions) -> dict[str, dict[str, Any]]:
    """Return the options of train.ddp that each condition sets."""
    chosen = {name: getattr(options, name) for name in CUSTOM_OPTIONS}
    given = {name: value for name, value in chosen.items() if value != OPTIONS[name].default}
    return CONDITIONS | ({CUSTOM: {"augment": "una", **given}} if given else {})


def _run(options: CompareOptions) -> int:
    options = replace(options, data=options.data or os.environ.get("UNA_FAST_DATA", ""))
    import_extra("train.report.page")  # so that a missing package is noticed before the training
    # imported late: --help and errors of the command line should not wait for torch
    from train.launch.prepare import PreparedRun
    from train.launch.seeds import train_seeds

    output = Path(options.output)
    with output_folder(output, COMPARISON, resume=is_own(output, COMPARISON)):
        runs = {name: _run_of(options, output / name, added) for name, added in conditions(options).items()}
        for run in runs.values():
            PreparedRun(run)  # checks all options before the first training
        for name, run in runs.items():
            sys.stderr.write(f"--- {name} ---\n")
            if code := train_seeds(run):
                return code
        _report(options)
    return 0


def _run_of(options: CompareOptions, folder: Path, condition: Mapping[str, Any]) -> Run:
    """Return the options for training one condition with all seeds, or for resuming it if `folder` contains runs."""
    values: dict[str, Any] = {name: getattr(options, name) for name in OPTIONS if name not in CUSTOM_OPTIONS}
    values |= {"output": str(folder), "index": str(folder.parent / INDEX), "schedule": "linear"}
    tasks = "sts,near-miss" + (",retrieval" if options.data and retrieval_folders(Path(options.data)) else "")
    values |= {"evaluate": options.data, "tasks": tasks, "resume": is_own(folder, RUNS)}
    return make_run({**values, **condition})


def _report(options: CompareOptions) -> None:
    """Compare each condition with "none" (no negatives). Write compare.json and compare.html, and print a summary."""
    from train.report.page import make_page

    output = Path(options.output)
    index = una_fast.load_index(output / INDEX, word_tokenizer=options.word_tokenizer)
    groups = []
    for name in conditions(options):
        runs = find_runs(output / name / f"seed-{seed}" for seed in options.seeds)
        probed = [_add_probe_score(replace(run, name=f"{name}/{run.name}"), index, options) for run in runs]
        groups.append(Group(name, probed))
    paired = {group.label: group.compared(groups[0]) for group in groups[1:]}
    lines = [answer(name, pairs) for name, pairs in paired.items()]
    lines += filter(None, [unimproved_note(run for group in groups for run in group.runs)])
    scored = any(score != PROBE for pairs in paired.values() for score in pairs)
    lines.append(TUNED if scored else UNSCORED)
    content = {
        "settings": {name: getattr(options, name) for name in OPTIONS if name != "output"},
        "conditions": conditions(options),
        "scores": {group.label: {str(run.seed): run.scores for run in group.runs} for group in groups},
        "differences": {name: {score: pair._asdict() for score, pair in of.items()} for name, of in paired.items()},
        "answer": lines,
    }
    write_json(output / "compare.json", content)
    write_file(output / "compare.html", make_page(groups, groups[0], lines))
    head, rows = score_table(groups, groups[0])
    table = aligned([*zip(head, *(row.cells for row in rows if row.kind != "run"), strict=True)], left=(0,))
    end = f"{output / 'compare.html'} shows charts, {output / 'compare.json'} contains all scores"
    sys.stdout.write("\n".join([*table, "", *lines, end, ""]))


def _add_probe_score(run: RunRecord, index: una_fast.Index, options: CompareOptions) -> RunRecord:
    """Return the run with the `Probe.distance` of its best encoder, on sentences of the index, as a new score."""
    from train.evaluation.model import load_model

    model = load_model(str(run.folder / BEST), AUTO, device=options.device, trust=options.trust_remote_code)
    try:
        return replace(run, scores=run.scores | {PROBE: una_fast.probe(model.embed, index, N_PROBED).distance})
    except InputError as error:  # all texts have the same embedding: the training has failed
        warn_user(f"{run.folder}: {error}")
        return run


def answer(name: str, comparisons: Mapping[str, Comparison]) -> str:
    """Return a sentence that says whether the condition `name` is better than "none" (no negatives).

    comparisons: {score: comparison of `name` with "none"}. The sentence is about the score that comes first in TITLES.
    """
    scored = [(prefix, score) for prefix in TITLES for score in comparisons if score.startswith(prefix)]
    if not scored:
        return f"{name}: no score can be compared."
    prefix, score = scored[0]
    pair = comparisons[score]
    change = f"{TITLES[prefix]} changes by {100 * pair.difference:+.2f} points"
    if pair.n < 2:
        return f"{name}: {change} with one seed, which shows nothing: give --seeds 42,0,1"
    interval = f"95% interval {100 * pair.low:+.2f} to {100 * pair.high:+.2f}, {pair.n} seeds"
    verdict = ": they help" if pair.low > 0 else ": they harm" if pair.high < 0 else ": no significant difference"
    return f"{name}: with hard negatives {change} ({interval}){'' if score == PROBE else verdict}."


ABOUT = "Train with and without hard negatives on your text, and report whether they help."
FLAGS = ", ".join(OPTIONS[name].flag for name in CUSTOM_OPTIONS)
EPILOG = f"If any of {FLAGS} is given, these options make another condition named {CUSTOM}. {TUNED}"
main = Command(
    "python -m train.compare", ABOUT, CompareOptions, _run,
    options=OPTIONS, extra="train", epilog=EPILOG, page="will-it-help",
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
