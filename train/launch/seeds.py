"""`--seeds 42,0,1`: trains one run per seed in OUTPUT/seed-N, and writes the mean scores into OUTPUT/seeds.json."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from train.config import Run
from train.launch.ranks import is_rank, launch
from train.messages import tell_user
from train.record.checkpoint import has_checkpoint
from train.record.folder import INDEX, RUN, RUNS, SEEDS, is_finished, is_own, output_folder
from train.report.runs import Group, read_run, score_table, unimproved_note
from una_fast.errors import InputError
from una_fast.storage.files import write_json
from una_fast.text_table import aligned


def train_seeds(run: Run) -> int:
    """Train one run per seed, and show the scores. End early if a run is interrupted or fails. Return the exit code."""
    if is_rank():
        raise InputError(
            "--seeds does not work under torchrun, because it starts the ranks of each seed itself: use --nproc, or "
            "call torchrun once per seed, with --seed and another --output"
        )
    output, runs = Path(run.output), [of_seed(run, seed) for seed in run.seeds]
    folders = [Path(seed_run.output) for seed_run in runs]
    with output_folder(output, RUNS, run.resume, vars(run)):
        # seeds with a checkpoint first: they detect a changed corpus, model or setting before a new seed is trained
        for seed_run in sorted(runs, key=lambda run: not has_checkpoint(Path(run.output))):
            tell_user(f"seed {seed_run.seed} of {', '.join(map(str, run.seeds))}")
            if code := launch(seed_run):
                break
        else:
            _write_table(output, folders)
            return code
    if any(map(has_checkpoint, folders)):
        done = sum(map(is_finished, folders))
        tell_user(f"{done} of {len(runs)} seeds are trained: repeat the command with --resume to train the others")
    return code


def _write_table(output: Path, folders: Sequence[Path]) -> None:
    """Write the scores of the finished runs into seeds.json, and print them as a table."""
    group = Group(output.name, [*map(read_run, folders)])
    means = group.compared()
    content = {  # scores are fractions; the deviation is the sample's (n - 1), None for a single seed
        "seeds": {str(run.seed): run.scores for run in group.runs},
        "mean": {name: mean.with_it for name, mean in means.items()},
        "deviation": {name: mean.deviation if mean.n > 1 else None for name, mean in means.items()},
        "n": {name: mean.n for name, mean in means.items()},
    }
    write_json(output / SEEDS, content)
    head, rows = score_table([group])
    table = "\n".join(aligned([head, *(row.cells for row in rows)], left=(0,))) if means else "no run has a score"
    note = f"\n{unimproved}\n" if (unimproved := unimproved_note(group.runs)) else ""
    tell_user(f"\n{table}\n{note}\n{output / SEEDS}; python -m train.report {output} shows the runs on a page")


def of_seed(run: Run, seed: int) -> Run:
    """Return the options for training one seed of `run`."""
    folder = Path(run.output, f"seed-{seed}")
    index, resume = run.index or str(Path(run.output, INDEX)), run.resume and is_own(folder, RUN)
    return dataclasses.replace(run, seed=seed, seeds=(), output=str(folder), index=index, resume=resume)
