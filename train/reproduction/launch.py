"""Carries out a request: checks it, does the works that are left, and saves the table after each."""

from __future__ import annotations

from collections.abc import Sequence

from train.reproduction.options import Request
from train.reproduction.plan import Plan, Work, make_plan, missing_models
from train.reproduction.results import save
from train.reproduction.setting import Setting
from train.reproduction.training import Training
from train.steps.signals import tell_user


def launch(request: Request) -> int:
    """Make the table or, with --dry-run, print what that would take; returns the exit code.

    Raises:
        InputError: bad input, or a missing model or file.
    """
    plan = make_plan(Setting(request))
    if request.paper.dry_run:
        from train.reproduction.estimate import say_plan

        say_plan(plan)
        return 0
    left = [work for work in plan.works if not work.done()]
    if missing := missing_models(left, plan.trust):
        raise missing
    for work in left:
        if isinstance(work, Training):
            work.check()
    code = _do(plan, left)
    if not code:
        print(save(plan))
        tell_user(f"{plan.setting.output / 'table.json'} and table.md hold it")
    return code


def _do(plan: Plan, left: Sequence[Work]) -> int:
    """Do one work after the other; returns the first exit code that is not 0, or 0."""
    for number, work in enumerate(left, start=1):
        if work.done():  # an earlier work did it too
            continue
        tell_user(f"{work.name}, {number} of {len(left)}")
        if code := work.do():
            tell_user(f"the same command goes on: {len(left) - number + 1} of {len(left)} are left")
            return code
        save(plan)
    return 0
