"""The work that measures the cells of a request: each training, scoring, count or draw is done once."""

from __future__ import annotations

import dataclasses
import functools
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import una_fast
from bench.paper.request import Request
from bench.paper.tables import CHECKPOINT, DEV, NEGATIVE, PAIRS, RUN, Cell, Scores, Source
from train import evaluate
from train.config import OPTIONS, Run
from train.encoder.pretrained import load_config
from train.evaluation.scoring import is_scored
from train.evaluation.tasks.registry import read_task, task_names
from train.launch.prepare import PreparedRun
from train.launch.seeds import of_seed, train_seeds
from train.record.checkpoint import check_resumed
from train.record.folder import DEV as DEV_PREFIX
from train.record.folder import RUNS, SUMMARY, is_finished, is_own
from train.report.runs import read_run, read_scores, unimproved_note
from una_fast.augment.registry import make_augmentation
from una_fast.command import arguments_of, settings_of
from una_fast.options import Files, Words
from una_fast.storage.files import read_json, read_object


@functools.cache  # three sentences share it
def index_of(run: Run) -> una_fast.Index:
    """Build an index of a run's corpus in memory."""
    return una_fast.build_index([*map(Path, run.corpus)], progress=True, **settings_of(run, Files, Words))


class Work(NamedTuple):
    """Measures the cells of a source."""

    name: str  # in messages
    command: str  # a shell command that does the same
    scores: Callable[[], Scores]  # the scores so far
    is_run: bool = False  # whether the work takes long and stores its result; if False, it is done with the table
    done: Callable[[], bool] = lambda: True  # whether nothing is left to do
    # raises InputError if the work would fail; called before any work starts, because other work takes hours
    check: Callable[[], Any] = lambda: None
    do: Callable[[], int] = lambda: 0  # does what is left, and returns the exit code
    notes: Callable[[], list[str]] = list  # what a reader of the scores must know


def works_of(request: Request, cells: Sequence[Cell]) -> dict[Source, Work]:
    """Return the work of each source, in the order of the rows.

    An unpublished encoder, and a run whose texts the user did not give, have no work.
    """
    makers = {CHECKPOINT: scoring, PAIRS: counting, NEGATIVE: drawing, RUN: training}
    by_source: dict[Source, list[Cell]] = {}
    for cell in cells:
        by_source.setdefault(cell.source, []).append(cell)
    made = (source for source in by_source if source.name and not request.lacks(source))
    return {source: makers[source.kind](request, source, by_source[source]) for source in made}


def training(request: Request, source: Source, cells: Sequence[Cell]) -> Work:
    """Return the work of a RUN: `train.ddp` with each seed, scored on STS if a cell needs more than the dev score."""
    wanted = [request.seeds if cell.seed is None else (cell.seed,) for cell in cells]
    seeds = tuple(dict.fromkeys(seed for several in wanted for seed in several))
    scored = any(cell.score != DEV for cell in cells)
    run = request.run_of(source, seeds, scored)
    runs = {Path(one.output): one for one in (of_seed(run, seed) for seed in seeds)}

    def is_done(folder: Path) -> bool:
        if not is_finished(folder) or (scored and not is_scored(runs[folder])):
            return False
        identity = PreparedRun(dataclasses.replace(runs[folder], dev="", evaluate="")).run.identity()
        settings = read_json(folder / SUMMARY)["settings"]
        check_resumed(folder, {f"--{name.replace('_', '-')}": value for name, value in settings.items()}, identity)
        return True

    return Work(
        name=str(Path(run.output).relative_to(request.output)),
        command=f"python -m train.ddp {shlex.join(arguments_of(OPTIONS.values(), vars(run)))}",
        scores=lambda: {one.seed: scores_of(folder) for folder, one in runs.items() if is_finished(folder)},
        is_run=True,
        done=lambda: all(map(is_done, runs)),
        check=lambda: PreparedRun(dataclasses.replace(of_seed(run, seeds[0]), evaluate="")),
        do=lambda: train_seeds(dataclasses.replace(run, resume=is_own(Path(run.output), RUNS))),
        notes=lambda: [*filter(None, [unimproved_note(map(read_run, filter(is_finished, runs)))])],
    )


def scores_of(folder: Path) -> dict[str, float]:
    """Return the scores of a run by their names in tables.yaml, as fractions."""
    return {DEV if name.startswith(DEV_PREFIX) else name: score for name, score in read_run(folder).scores.items()}


def scoring(request: Request, source: Source, _: Sequence[Cell]) -> Work:
    """Return the work of a CHECKPOINT: `train.evaluate` scores a published encoder on the STS tasks."""
    values = {name: option.default for name, option in evaluate.main.options.items()} | dict(source.options)
    short = "_".join([*Path(source.name).parts[-2:], values["pooling"], *["whitening"][: values["whiten"]]])
    path = request.output / "checkpoints" / f"{short}.json"
    values |= {name: request.given[name] for name in ("tasks", "device", "trust_remote_code") if name in request.given}
    values |= {"model": source.name, "data": str(request.downstream), "json": str(path)}
    words = arguments_of(evaluate.main.options.values(), values)
    return Work(
        name=source.name,
        command=f"python -m train.evaluate {shlex.join(words)}",
        scores=lambda: {request.seeds[0]: read_scores(read_json(path))} if path.is_file() else {},  # any seed will do
        is_run=True,
        done=lambda: {*task_names(values["tasks"])} <= {*read_object(path).get("sts", {})},
        check=lambda: load_config(source.name, 0.0, values["trust_remote_code"]),
        do=lambda: evaluate.main(words),
    )


def counting(request: Request, source: Source, _: Sequence[Cell]) -> Work:
    """Return the work of PAIRS: count the pairs in the test set of a task."""

    def count() -> Scores:
        return {request.seeds[0]: {PAIRS: read_task(request.downstream, source.name).sizes["test"]}}

    return Work(source.name, f"count the pairs of {source.name}", count)


def drawing(request: Request, source: Source, _: Sequence[Cell]) -> Work:
    """Return the work of a NEGATIVE: draw a negative of a sentence with each seed, from an index of the corpus."""
    run = Run(**request.base | {"corpus": request.corpus, "seeds": ()})

    def draw(seed: int) -> str:
        return make_augmentation("una", index_of(run), vars(run), seed=seed).augment([source.name])[0]

    def draw_all() -> Scores:
        return {seed: {NEGATIVE: draw(seed)} for seed in request.seeds}

    return Work(source.name, f"draw negatives of {source.name!r}", draw_all)
