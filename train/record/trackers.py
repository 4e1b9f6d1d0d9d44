"""The experiment trackers of the option --report-to, which show the metrics of a run while it trains.

A tracker, built in or user-defined, is a class whose constructor takes no arguments. Rank 0 calls its three methods:

- ``start(settings, step, run_id)`` before a run starts or continues. `settings` maps the names of all options to their
  values, `step` is the first step that will be logged, and `run_id` is what an earlier call of `start` returned, or
  None for a new run. It returns the id of the run, or None.
- ``log(values, step)`` after a step. `values` maps names such as "loss/negatives", "lr" and "dev/FILE" to numbers.
- ``finish()`` when the run has ended or was stopped.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from train.record.folder import TENSORBOARD
from una_fast.errors import InputError, warn_user
from una_fast.imports import import_object
from una_fast.storage.files import read_object, write_json

IDS = "trackers.json"  # in --output: tracker -> id of the run
PROJECT = "una_fast"  # name of the project or experiment, unless the tracker's environment variable gives another
FLUSH_SECONDS = 3  # a killed process loses the values that TensorBoard's writer has not flushed


class _TensorBoard:
    def start(self, settings: dict[str, Any], step: int, run_id: str | None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder = Path(settings["output"]) / TENSORBOARD
        # purge_step hides the values that an earlier process wrote for this and later steps
        self._writer = SummaryWriter(str(folder), purge_step=step, flush_secs=FLUSH_SECONDS)
        self.finish = self._writer.close

    def log(self, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)


class _WandB:
    def start(self, settings: dict[str, Any], step: int, run_id: str | None) -> str:
        import wandb

        output, project = Path(settings["output"]), os.environ.get("WANDB_PROJECT", PROJECT)
        resume: Literal["allow"] | None = "allow" if run_id else None
        run = wandb.init(project=project, name=output.name, dir=str(output), config=settings, id=run_id, resume=resume)
        run.define_metric("*", step_metric="step")  # wandb's own step counter refuses a repeated step
        self._run, self.finish = run, run.finish
        return run.id

    def log(self, values: dict[str, float], step: int) -> None:
        self._run.log({**values, "step": step})


class _Trackio:
    def start(self, settings: dict[str, Any], step: int, run_id: str | None) -> str:
        import trackio

        self.log, self.finish = trackio.log, trackio.finish
        project, resume = os.environ.get("TRACKIO_PROJECT", PROJECT), "allow" if run_id else "never"
        config = {name: str(value) for name, value in settings.items()}
        return trackio.init(project=project, name=run_id, config=config, resume=resume).name


class _MLflow:
    def start(self, settings: dict[str, Any], step: int, run_id: str | None) -> str:
        import mlflow

        self.log, self.finish = mlflow.log_metrics, mlflow.end_run
        mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT))
        run = mlflow.start_run(run_id=run_id, run_name=None if run_id else Path(settings["output"]).name)
        if run_id is None:
            mlflow.log_params(settings)
        return run.info.run_id


# package -> tracker; the package is imported only if --report-to names it
TRACKERS = {"tensorboard": _TensorBoard, "wandb": _WandB, "trackio": _Trackio, "mlflow": _MLflow}


def make_trackers(names: str) -> dict[str, Any]:
    """Make the trackers in `names`, such as "wandb,mlflow", but do not start them. Return them by name."""
    listed = dict.fromkeys(map(str.strip, names.split(",")))
    return {name: _make(name) for name in listed if name not in ("", "none")}


def _make(name: str) -> Any:
    if ":" in name:
        user_class = import_object(name)
        try:
            return user_class()
        except Exception as error:  # user code raises anything
            raise InputError(f"--report-to {name}: cannot be created: {type(error).__name__}: {error}") from error
    if name not in TRACKERS:
        raise InputError(f"--report-to {name}: unknown tracker: choose from {', '.join(TRACKERS)}, none, MODULE:CLASS")
    if find_spec(name) is None:
        raise InputError(f"--report-to {name}: the package {name} is not installed: pip install {name}")
    return TRACKERS[name]()


def start_trackers(trackers: dict[str, Any], settings: Mapping[str, Any], step: int) -> None:
    """Start the trackers for a run that starts or continues with `step`. Drop a tracker that fails, with a warning."""
    path = Path(settings["output"]) / IDS
    ids = read_object(path)
    for name, tracker in [*trackers.items()]:
        try:
            ids[name] = tracker.start(dict(settings), step, ids.get(name))
        except Exception as error:  # trackers raise exceptions of different types
            del trackers[name]
            warn_user(f"--report-to {name}: cannot start: {error!r:.200}; the run continues without it")
    if ids := {name: run_id for name, run_id in ids.items() if run_id}:
        write_json(path, ids)
