"""The tasks by name: what SentEval has, how large it is, and what a list of tasks stands for. Light to import."""

from __future__ import annotations

import difflib
import re

from una_fast.errors import InputError

# STS13 is without its SMT subset, which SentEval may not distribute
SUBSETS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
STS_TASKS = (*SUBSETS, "STSBenchmark", "SICKRelatedness")
DEV_TASKS = ("STSBenchmark", "SICKRelatedness")
TRANSFER_TASKS = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
TASK_SETS = {"sts": STS_TASKS, "transfer": TRANSFER_TASKS, "full": (*STS_TASKS, *TRANSFER_TASKS)}
SHORT_NAMES = {"stsb": "STSBenchmark", "sickr": "SICKRelatedness", "sick": "SICKRelatedness", "sst": "SST2"}
TEST_PAIRS = {  # the paper's table of test sizes
    "STS12": 3108,
    "STS13": 1500,
    "STS14": 3750,
    "STS15": 3000,
    "STS16": 1186,
    "STSBenchmark": 1379,
    "SICKRelatedness": 4927,
}
SIZES = {  # examples of each split of a transfer task, as SentEval's readers load them
    "MR": {"train": 10662},
    "CR": {"train": 3775},
    "SUBJ": {"train": 10000},
    "MPQA": {"train": 10606},
    "SST2": {"train": 67349, "dev": 872, "test": 1821},
    "TREC": {"train": 5452, "test": 500},
    "MRPC": {"train": 4076, "test": 1725},
}


def task_names(tasks: str, mode: str = "test") -> list[str]:
    """The names that a value of --tasks stands for; in dev mode, those of a set that have a dev score.

    Raises:
        InputError: a name that is no task's, or none at all.
    """
    if tasks in TASK_SETS:
        return [name for name in TASK_SETS[tasks] if mode != "dev" or name in (*DEV_TASKS, *TRANSFER_TASKS)]
    known = {_plain(name): name for name in TASK_SETS["full"]} | SHORT_NAMES
    names = [name.strip() for name in tasks.split(",") if name.strip()]
    for name in names:
        if _plain(name) not in known:
            near = difflib.get_close_matches(_plain(name), known, n=1, cutoff=0.5)
            hint = f"did you mean {known[near[0]]}?" if near else f"choose from {', '.join(TASK_SETS['full'])}"
            raise InputError(f"unknown task {name!r}: {hint}")
    if not names:
        raise InputError(f"--tasks {tasks!r} names no task: give sts, transfer, full or names of tasks")
    return list(dict.fromkeys(known[_plain(name)] for name in names))


def _plain(name: str) -> str:
    """A task's name without case, hyphens, underscores and spaces: STS-B, sts_b and stsb are one."""
    return re.sub(r"[-_\s]", "", name).lower()
