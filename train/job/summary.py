"""run.json: settings, state and scores of a run, written when it starts and when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from train.job.load import Job
from train.loop.loop import Outcome
from train.loop.telemetry import Telemetry
from train.record.folder import SUMMARY, write_json
from train.record.machine import machine, peak_memory, versions
from una_fast.augment.radius import resolve_radius


def announce(job: Job) -> None:
    """Write the run.json of a run that begins, with status "running"."""
    write_json(Path(job.run.output) / SUMMARY, {"status": "running", **_about(job)})


def summarise(job: Job, outcome: Outcome, telemetry: Telemetry) -> None:
    """Write the run.json of a run that has ended; with --profile, also show where its time went."""
    progress, memory = outcome.progress, peak_memory()
    content = {
        "status": outcome.status,
        **_about(job),
        "progress": vars(progress),
        "scores": {"stsb_dev": progress.best_score, "stsb_dev_last": progress.last_score},
        "this_process": {**telemetry.times(), "peak_memory": memory},
    }
    write_json(Path(job.run.output) / SUMMARY, content)
    if job.run.profile:
        telemetry.say_profile()
        peak = ", ".join(f"{name} {size / 2**20:.0f} MiB" for name, size in memory.items())
        telemetry.say(f"peak memory of rank 0: {peak}")


def _about(job: Job) -> dict[str, Any]:
    """The content of run.json that does not depend on how the run ends."""
    return {
        "settings": vars(job.run),
        "resolved": {"radius": resolve_radius(job.run.radius, (job.other_index or job.index).n_terms, job.run.window)},
        "versions": versions(),
        "machine": machine(),
        "ranks": job.ranks.world,
        "corpus": {**job.material.counts(), "sources": job.index.sources},
        **({"negatives_from": {"sources": job.other_index.sources}} if job.other_index else {}),
        "identity": job.identity,
    }
