"""The cells of a request -> the works that measure them, each of them once: commands of this package, or a count."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from train import evaluate
from train.config.command import words_of
from train.config.run import Run, options
from train.encoder.pretrained import load_config
from train.evaluation.tasks.registry import read_task, task_names
from train.launch.corpus import build_index_of, open_index, sources
from train.launch.finish import is_scored
from train.launch.resolve import resolve_options
from train.launch.seeds import of_seed, train_seeds
from train.paper.request import Request
from train.paper.tables import CHECKPOINT, DEV, NEGATIVE, PAIRS, RUN, Cell, Scores, Source
from train.record.checkpoint import check_identity
from train.record.folder import RUNS, SCORES, check_inside, is_finished, is_own, read_object, read_summary
from train.report.runs import old_names, read_evaluation, read_run
from una_fast.augment.registry import make_augmentation
from una_fast.storage import is_saved


class Work(NamedTuple):
    """What measures the cells of a source, or must be there before.

    name: the work in messages. command: what does the same in a shell. done: whether nothing is left to do. do: do what
    is left; returns the exit code. scores: what is measured so far. check: raises InputError if the work would fail,
    before works that take hours.
    """

    name: str
    command: str
    done: Callable[[], bool]
    do: Callable[[], int]
    scores: Callable[[], Scores]
    check: Callable[[], Any] = lambda: None


def works_of(request: Request, cells: Sequence[Cell]) -> dict[Source, Work]:
    """The works by source, in the order of the rows. Encoders that are not published have none."""
    own: dict[Source, list[Cell]] = {}
    for cell in cells:
        own.setdefault(cell.source, []).append(cell)
    others = {CHECKPOINT: scoring, PAIRS: counting, NEGATIVE: drawing}
    return {
        source: training(request, source, its_cells) if source.kind == RUN else others[source.kind](request, source)
        for source, its_cells in own.items()
        if source.name
    }


def training(request: Request, source: Source, cells: Sequence[Cell]) -> Work:
    """Runs of `train.ddp` by seed, scored on the STS tasks if a cell needs more than the dev score."""
    wanted = [request.seeds if cell.seed is None else (cell.seed,) for cell in cells]
    seeds = tuple(dict.fromkeys(seed for some in wanted for seed in some))
    scored = any(cell.score != DEV for cell in cells)
    run = request.run_of(source, seeds, scored)
    runs = {Path(one.output): one for one in (of_seed(run, seed) for seed in seeds)}

    def is_done(folder: Path) -> bool:
        if not is_finished(folder) or (scored and not is_scored(runs[folder])):
            return False
        identity = resolve_options(dataclasses.replace(runs[folder], dev="", evaluate="")).identity()
        check_identity(folder, {"settings": read_summary(folder)["settings"]}, {"settings": identity})
        return True

    return Work(
        name=str(Path(run.output).relative_to(request.output)),
        command=f"python -m train.ddp {shlex.join(words_of(options().values(), vars(run)))}",
        check=lambda: resolve_options(dataclasses.replace(of_seed(run, seeds[0]), evaluate="")),
        done=lambda: all(map(is_done, runs)),
        do=lambda: train_seeds(dataclasses.replace(run, resume=is_own(Path(run.output), RUNS))),
        scores=lambda: {
            one.seed: old_names(read_run(folder).scores) for folder, one in runs.items() if is_finished(folder)
        },
    )


def scoring(request: Request, source: Source) -> Work:
    """The scores of a published encoder on the STS tasks, by `train.evaluate`."""
    values = {name: option.default for name, option in evaluate.OPTIONS.items()} | dict(source.options)
    short = "_".join([*Path(source.name).parts[-2:], values["pooling"], *["whitening"][: values["whiten"]]])
    path = request.output / "checkpoints" / f"{short}.json"
    values |= {name: request.given[name] for name in ("tasks", "device", "trust_remote_code") if name in request.given}
    values |= {"model": source.name, "data": str(request.downstream), "json": str(path)}
    words = words_of(evaluate.OPTIONS.values(), values)

    def done() -> bool:
        kept = read_object(path, SCORES)
        return kept.get("model") == source.name and {*task_names(values["tasks"])} <= {*kept.get("sts", {})}

    return Work(
        name=source.name,
        command=f"python -m train.evaluate {shlex.join(words)}",
        check=lambda: load_config(source.name, 0.0, values["trust_remote_code"]),
        done=done,
        do=lambda: evaluate.main(words),
        # they have no seed, and stand under the first of the command
        scores=lambda: {request.seeds[0]: read_evaluation(path)} if path.is_file() else {},
    )


def counting(request: Request, source: Source) -> Work:
    """The size of the test set of a task, which is counted each time."""

    def scores() -> Scores:
        return {request.seeds[0]: {source.kind: read_task(request.downstream, source.name).sizes["test"]}}

    return Work(source.name, f"count the pairs of {source.name}", lambda: True, lambda: 0, scores)


def drawing(request: Request, source: Source) -> Work:
    """A negative of a sentence for each seed, by an index of the corpus, which is the work."""
    own = {"corpus": request.corpus, "seeds": (), "index": str(request.output / "index")}
    run = Run(**request.base | own)

    def do() -> int:
        check_inside(Path(run.index))
        build_index_of(run).save(run.index)
        return 0

    def scores() -> Scores:
        found = {}
        if is_saved(Path(run.index)):
            index = open_index(run, sources(run))
            for seed in request.seeds:
                augmenter = make_augmentation("una", index, **{**vars(run), "seed": seed})
                found[seed] = {source.kind: augmenter.augment([source.name])[0]}
        return found

    command = shlex.join(["una-fast", "index", *request.corpus, "--output", run.index])
    return Work(run.index, command, lambda: is_saved(Path(run.index)), do, scores)
