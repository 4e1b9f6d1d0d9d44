"""Estimates of the cost of an index of any size, by stage, from the measured cost of a million sentences.

python -m bench.scale.costs      # the tables of docs/cluster.md
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from una_fast.index.staged.executors import LARGEST, TEXT_FACTOR, Budget

RESULTS = Path(__file__).parents[1] / "results" / "cluster.json"
MEASURED_AT = 1_000_000  # sentences
HEAPS = 0.64  # V grows as N to this power: 23,515 terms in 10,000 sentences of Wikipedia, 451,691 in 1,000,000
BY_VOCABULARY = ("rank",)  # stages whose work grows with V, not with N
MOST_MACHINES = {"write": 2}  # two arrays are nearly all of an index, and one process writes one
TEXT_BYTES = 129  # mean length of a sentence of Wikipedia
SLICES = 8  # reads at most of a split's file for one hash range
STAGES = ("read", "scan", "merge", "rank", "label", "number", "write")
SIZES = (10**6, 10**9, 10**10)
MACHINES = (1, 8, 64)


@dataclass(frozen=True)
class Machine:
    """cores; bytes a second: disk: a machine's own disk; link: its network; shared: the storage of all machines."""

    cores: int = 16
    disk: float = 2e9
    link: float = 1e9
    shared: float = 10e9

    def latency(self, machines: int) -> float:
        """Seconds of a small read, from the machine's own disk or from shared storage."""
        return 1e-4 if machines == 1 else 5e-4

    def bandwidth(self, machines: int) -> float:
        """Bytes a second that a build moves: on its own disk, or between `machines` machines and shared storage."""
        return self.disk if machines == 1 else min(machines * self.link, self.shared)


@dataclass(frozen=True)
class Cost:
    """Cost of one stage: seconds; network: bytes transferred; disk: bytes at its end, at most."""

    seconds: float
    network: float
    disk: float


def small_reads(stage: str, n_documents: int) -> float:
    """Number of small reads of a stage that reads each hash range of each split; 0 for other stages."""
    if stage not in ("merge", "number"):
        return 0
    text = n_documents * TEXT_BYTES
    return SLICES * max(text / LARGEST, 1) * Budget(TEXT_FACTOR * LARGEST, 1).n_partitions(int(text))


def costs(n_documents: int, machines: int, machine: Machine | None = None) -> dict[str, Cost]:
    """The cost of each stage: processors and storage work at the same time, and the slower one determines the time."""
    machine = machine or Machine()
    stages = json.loads(RESULTS.read_text())["million"]["stages"]
    found = {}
    for name in STAGES:
        stage = stages[name]
        factor = n_documents / MEASURED_AT
        work = factor**HEAPS if name in BY_VOCABULARY else factor
        moved = (stage["read_mib"] + stage["written_mib"]) * 2**20 * work
        busy = stage["cpu_seconds"] * work / (machine.cores * machines)
        at_once = 1 if machines == 1 else min(machines, MOST_MACHINES.get(name, machines))
        waits = small_reads(name, n_documents) * machine.latency(machines) / (machine.cores * machines)
        seconds = max(busy, moved / machine.bandwidth(at_once)) + waits
        found[name] = Cost(seconds, moved if machines > 1 else 0.0, stage["disk_mib"] * 2**20 * factor)
    return found


def duration(seconds: float) -> str:
    """Seconds as text in s, min or h."""
    for limit, size, unit in ((100, 1, "s"), (6000, 60, "min"), (float("inf"), 3600, "h")):
        if seconds < limit:
            value = seconds / size
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    raise AssertionError


def size(n_bytes: float) -> str:
    """Bytes in GB or TB."""
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes < 1e12 else f"{n_bytes / 1e12:,.1f} TB"


def table(n_documents: int) -> str:
    """The costs of one size on 1, 8 and 64 machines, as a table of Markdown."""
    columns = [costs(n_documents, machines) for machines in MACHINES]
    lines = ["| stage | 1 machine | 8 machines | 64 machines | network | disk |", "|:--|--:|--:|--:|--:|--:|"]
    for name in STAGES:
        times = " | ".join(duration(column[name].seconds) for column in columns)
        lines.append(f"| {name} | {times} | {size(columns[1][name].network)} | {size(columns[0][name].disk)} |")
    totals = " | ".join(duration(sum(cost.seconds for cost in column.values())) for column in columns)
    network = size(sum(cost.network for cost in columns[1].values()))
    peak = size(max(cost.disk for cost in columns[0].values()))
    lines.append(f"| all | {totals} | {network} | {peak} at most |")
    return "\n".join(lines)


def tables() -> str:
    """The tables of all sizes."""
    return "\n\n".join(f"**{n:,} sentences**\n\n{table(n)}" for n in SIZES)


if __name__ == "__main__":
    print(tables())
