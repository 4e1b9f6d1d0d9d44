"""Reads and writes evidence.json, the results of all runs, and compares repeated runs with it.

    "bases"       by base: "digest" of its weights, and its scores "before" training
    "machines"    by number: the machine and the versions of packages
    "conditions"  by condition: "settings", "digest" of the base, and "runs"
    "runs"        by seed: "dev" scores by step, "scores" by task, and the number of the "machine"
    "failed"      by condition and seed: the reason
    "verifiers"   by name and seed: settings, machine, threshold, and scores by set (see bench.evidence.verifier)
    "near_sets"   by encoder, set and group: figures on the test parts (see bench.evidence.near_scores)

A run without "scores" was made only to choose settings by dev score.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bench.evidence.conditions import Condition
from bench.report import EVIDENCE
from una_fast.errors import InputError
from una_fast.storage.files import read_json, write_file

TOLERANCE = 1e-3  # largest accepted difference of a repeated score
PARTS = ("bases", "machines", "conditions", "failed", "verifiers", "near_sets")


def read_evidence() -> dict[str, Any]:
    """Read evidence.json. Parts that it lacks are empty."""
    return {part: {} for part in PARTS} | (read_json(EVIDENCE) if EVIDENCE.is_file() else {})


@contextmanager
def changed_evidence() -> Iterator[dict[str, Any]]:
    """Write what the with block changes in the content of evidence.json, with the scores of a run on one line."""
    content = read_evidence()
    yield content
    text = re.sub(r"\{[^{}]*\}", lambda found: json.dumps(json.loads(found[0])), json.dumps(content, indent=1))
    write_file(EVIDENCE, f"{text}\n".encode())


def is_kept(content: Mapping[str, Any], condition: Condition, digest: str, seed: int, scored: bool) -> bool:
    """Return whether evidence.json has this run, with the current settings and from the same weights.

    digest: of the current weights; scored: whether the run must have scores, not only dev scores.
    """
    earlier = content["conditions"].get(condition.name, {})
    same = (earlier.get("settings"), earlier.get("digest")) == (condition.settings(), digest)
    return same and ("scores" if scored else "dev") in earlier["runs"].get(str(seed), {})


def keep(condition: Condition, digest: str, seed: int, result: Mapping[str, Any], machine: Mapping[str, Any]) -> None:
    """Add a run to evidence.json.

    Earlier runs of the condition are deleted if they have other settings or started from other weights. digest: of the
    weights from which the run started; result: from `runs.result_of`; machine: from `runs.machine_of`.
    """
    about = {"settings": condition.settings(), "digest": digest}
    with changed_evidence() as content:
        earlier = content["conditions"].get(condition.name, {})
        runs = earlier.get("runs", {}) if {name: earlier.get(name) for name in about} == about else {}
        number = next((name for name, one in content["machines"].items() if one == machine), None)
        if number is None:
            number = str(len(content["machines"]) + 1)
            content["machines"][number] = machine
        content["conditions"][condition.name] = {**about, "runs": {**runs, str(seed): {**result, "machine": number}}}
        content["failed"].pop(f"{condition.name}, seed {seed}", None)


def committed(condition: Condition, seed: int) -> dict[str, float]:
    """Return the dev scores and task scores of a seed in evidence.json. Raises InputError if there are none."""
    run = read_evidence()["conditions"].get(condition.name, {}).get("runs", {}).get(str(seed))
    if not run:
        raise InputError(f"{EVIDENCE}: has no seed {seed} of {condition.name}: --check compares only seeds that it has")
    return {**run["dev"], **run.get("scores", {})}


def furthest(condition: Condition, seed: int, result: Mapping[str, Any]) -> float:
    """Return the largest difference between repeated and committed scores, dev scores included."""
    earlier = committed(condition, seed)
    again = {**result["dev"], **result.get("scores", {})}
    return max(abs(again[name] - earlier[name]) for name in again.keys() & earlier.keys())
