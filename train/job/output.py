"""Checks what is in the output folder before a run starts."""

from __future__ import annotations

from pathlib import Path

from train.config.run import Run
from train.record.folder import POINTER, foreign_file, is_finished, read_summary, read_written
from train.record.pointer import has_checkpoint
from una_fast.errors import InputError


def check_output(run: Run) -> None:
    """Refuse an output folder that holds another run or other files, and --resume without a checkpoint.

    A run may replace a run that never saved a checkpoint, and a demo an earlier demo. Nothing is removed here.
    """
    output = Path(run.output)
    if run.resume:
        if not has_checkpoint(output):
            raise InputError(f"--resume: {output} holds no checkpoint in last/: start without --resume")
        return
    earlier_demo = run.demo and read_summary(output).get("settings", {}).get("demo") is True
    saved = has_checkpoint(output) or POINTER in read_written(output)  # without last/, best/ may still be wanted
    if (saved or is_finished(output)) and not earlier_demo:
        can_go_on = has_checkpoint(output) and not is_finished(output)
        raise InputError(
            f"--output {output}: holds {'a run that can go on' if can_go_on else 'a finished run'}: "
            f"{'give --resume, ' if can_go_on else ''}choose another folder, or delete it"
        )
    if foreign := foreign_file(output):
        raise InputError(
            f"--output {output}: holds {foreign.relative_to(output)}, which no run of this program is known to have "
            "written: choose another folder"
        )
