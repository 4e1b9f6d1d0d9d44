"""The rows of a request -> the works that measure them, each of them once: commands of this package, or a count."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoConfig

import una_fast
from train import generate
from train.config.command import words_of
from train.config.run import Run, arguments_of, defaults, options, reading_arguments
from train.encoder.pretrained import from_pretrained, quiet
from train.evaluation.protocol import EvaluationProtocol
from train.evaluation.tasks.registry import read_task, task_names
from train.generation.parts import folder_of, summary_of
from train.launch.corpus import open_index, sources
from train.launch.finish import is_scored
from train.launch.resolve import resolve_options
from train.launch.seeds import of_seed, train_seeds
from train.paper.request import Request
from train.paper.tables import AVERAGE, DEV, PAIRS, PARAPHRASE, Cell, Checkpoint, Row, Source, Trained, Untrained
from train.record.folder import GENERATION, RUNS, is_finished, is_own, read_object, read_summary, write_json
from train.report.records import STS_AVERAGE, read_evaluation, read_run
from una_fast.errors import InputError

Scores = dict[int, dict[str, Any]]  # by seed, then by name; scores are fractions


@dataclass(frozen=True)
class Work:
    """What measures the cells of a source, or must be there before.

    name: the work in messages. command: what does the same in a shell, or words. models: names or folders of the models
    that must be on this machine. check: raises InputError if the work would fail, before works that take hours. done:
    whether nothing is left to do. do: do what is left; returns the exit code. scores: what is measured so far.
    """

    name: str
    command: str
    done: Callable[[], bool]
    do: Callable[[], int]
    models: Sequence[str] = ()
    check: Callable[[], Any] = lambda: None
    scores: Callable[[], Scores] = dict


def texts_needed(request: Request, rows: Sequence[Row]) -> list[Work]:
    """The works that write the texts which runs of the rows train with."""
    every = [cell.source for row in rows for cell in row.cells.values()]
    kinds = dict.fromkeys(source.texts for source in every if isinstance(source, Trained) and source.texts)
    return [texts(request, kind) for kind in kinds]


def measures_of(request: Request, rows: Sequence[Row]) -> dict[Source, Work]:
    """The work that measures each source, in the order of the rows; unpublished encoders have none."""
    cells: dict[Source, list[Cell]] = {}
    for row in rows:
        for cell in row.cells.values():
            cells.setdefault(cell.source, []).append(cell)
    found: dict[Source, Work] = {}
    for source, own in cells.items():
        if isinstance(source, Trained):
            found[source] = training(request, source, own)
        elif isinstance(source, Untrained):
            found[source] = counting(request, source) if source.score == PAIRS else drawing(request, source)
        elif source.model:
            found[source] = scoring(request, source)
    return found


def texts(request: Request, kind: str) -> Work:
    """Paraphrases or back-translations of the corpus, written by `train.generate` once for all tables of a folder."""
    path, own = request.texts_file(kind), request.own_texts(kind)
    names = (request.paper.paraphraser,) if kind == PARAPHRASE else request.paper.translator
    flags = ["--model"] if len(names) == 1 else ["--forward", "--backward"]
    precision = "fp32" if request.given.get("precision", "fp32") == "fp32" else "bf16"
    same = [word for name in ("column", "nproc", "device") if name in request.given
            for word in (f"--{name}", str(request.given[name]))]  # fmt: skip
    words = [kind, *(word for pair in zip(flags, names, strict=False) for word in pair), "--corpus", *request.corpus]
    words += ["--output", str(path), "--precision", precision, *same]
    models = [] if own else list(generate.read_job(words, "train.paper").models)

    def done() -> bool:
        if own:
            if not path.exists():
                flag = "--paraphrases" if kind == PARAPHRASE else "--back-translations"
                raise InputError(f"{flag} {path}: there is no such file")
            return True
        if not path.exists() or is_own(folder_of(path), GENERATION):
            return False
        by = read_object(summary_of(path)).get("names", models)
        if by != models:
            raise InputError(
                f"{path}: was written by {', '.join(by)}: choose another --output, or name the same models"
            )
        return True

    def do() -> int:
        path.parent.mkdir(parents=True, exist_ok=True)
        return generate.main([*words, *["--resume"][: is_own(folder_of(path), GENERATION)]])

    return Work(str(path), f"python -m train.generate {shlex.join(words)}", done, do, models)


def training(request: Request, source: Trained, cells: Sequence[Cell]) -> Work:
    """Runs of `train.ddp` by seed, scored on the STS tasks if a cell needs more than the dev score."""
    wanted = [request.seeds if cell.seed is None else (cell.seed,) for cell in cells]
    seeds = tuple(dict.fromkeys(seed for some in wanted for seed in some))
    scored = any(cell.score != DEV for cell in cells)
    run = request.run_of(source, seeds, scored)
    runs = {seed: of_seed(run, seed) for seed in seeds}

    def seed_done(one: Run) -> bool:
        if not is_finished(Path(one.output)) or (scored and not is_scored(one)):
            return False
        saved = read_summary(Path(one.output))["settings"]
        identity = resolve_options(dataclasses.replace(one, dev="", evaluate="")).identity()
        as_saved = json.loads(json.dumps(identity, default=str))
        return all(saved.get(name, defaults()[name]) == value for name, value in as_saved.items())

    def do() -> int:
        return train_seeds(dataclasses.replace(run, resume=is_own(Path(run.output), RUNS)))

    def scores() -> Scores:
        folders = {seed: Path(one.output) for seed, one in runs.items()}
        found = {seed: read_run(folder).scores for seed, folder in folders.items() if is_finished(folder)}
        return {seed: {**one, AVERAGE: one.get(STS_AVERAGE)} for seed, one in found.items()}

    return Work(
        name=str(Path(run.output).relative_to(request.output)),
        command=f"python -m train.ddp {shlex.join(words_of(options().values(), vars(run)))}",
        models=[run.model],
        check=lambda: resolve_options(dataclasses.replace(runs[seeds[0]], evaluate="")),
        done=lambda: all(map(seed_done, runs.values())),
        do=do,
        scores=scores,
    )


def scoring(request: Request, source: Checkpoint) -> Work:
    """The scores of a published encoder, or of the user's own, on the STS tasks."""
    tasks = task_names(request.given.get("tasks", "sts"))
    short = "_".join([*Path(source.model).parts[-2:], source.pooling, *["whitening"][: source.whiten]])
    path = request.output / "checkpoints" / f"{short}.json"

    def done() -> bool:
        kept = read_object(path)
        return kept.get("model") == source.model and {*tasks} <= {*kept.get("sts", {})}

    def do() -> int:
        from train.evaluation.scoring import score_model  # scikit-learn takes a second

        protocol, device = EvaluationProtocol(pooling=source.pooling, whiten=source.whiten), request.given.get("device")
        results = score_model(source.model, request.downstream, tasks, protocol, device or "auto", trust=request.trust)
        write_json(path, results.to_json())
        return 0

    def scores() -> Scores:
        """They have no seed, and stand under the first of the command."""
        if not path.is_file():
            return {}
        found, _ = read_evaluation(path, [])
        return {request.seeds[0]: {**found, AVERAGE: found.get(STS_AVERAGE)}}

    words = ["--model", source.model, "--pooling", source.pooling, *["--whiten"][: source.whiten]]
    words += ["--tasks", ",".join(tasks), "--json", str(path)]
    return Work(source.model, f"python -m train.evaluate {shlex.join(words)}", done, do, [source.model], scores=scores)


def counting(request: Request, source: Untrained) -> Work:
    """The size of the test set of a task, which is counted each time."""

    def scores() -> Scores:
        return {request.seeds[0]: {source.score: read_task(request.downstream, source.of).sizes["test"]}}

    return Work(source.of, f"count the pairs of {source.of}", lambda: True, lambda: 0, scores=scores)


def drawing(request: Request, source: Untrained) -> Work:
    """A negative of a sentence for each seed, by an index of the corpus, which is the work."""
    run = Run(**request.base | {"corpus": request.corpus, "seeds": (), "index": str(request.index_of())})
    files = sources(run)

    def do() -> int:
        reading = reading_arguments(vars(run))
        una_fast.build_index(
            files, word_tokenizer=run.word_tokenizer, lowercase=run.lowercase, progress=True, **reading
        ).save(run.index)
        return 0

    def negative(index: una_fast.Index, seed: int) -> str:
        augmenter = una_fast.Augmenter(index, **arguments_of(una_fast.Augmenter, vars(run) | {"seed": seed}))
        return augmenter.augment([source.of])[0]

    def scores() -> Scores:
        if not Path(run.index).exists():
            return {}
        index = open_index(run, files)
        return {seed: {source.score: negative(index, seed)} for seed in request.seeds}

    command = shlex.join(["una-fast", "index", *request.corpus, "--output", run.index])
    return Work(run.index, command, Path(run.index).exists, do, scores=scores)


def missing_models(works: Sequence[Work], trust: bool) -> InputError | None:
    """An error that names all models that are not on this machine and how to fetch them; None if none is missing."""
    quiet()
    names = dict.fromkeys(name for work in works for name in work.models)
    missing = [name for name in names if not _is_here(name, trust)]
    if not missing:
        return None
    commands = " && ".join(f"hf download {name}" for name in missing)
    return InputError(
        f"{', '.join(missing)}: not on this machine, and the Hugging Face hub cannot be reached: run "
        f"`{commands}` where there is a network, or name models that are here (--model, --paraphraser, "
        "--translator, --checkpoints), or choose --rows or --columns without them"
    )


def _is_here(name: str, trust: bool) -> bool:
    try:
        from_pretrained("configuration", AutoConfig, name, trust)
    except InputError:
        if Path(name).exists() or name.startswith((".", "/", "~")):
            raise
        return False
    return True
