"""Make the tables of docs/benchmarks.md from the results of `bench.training.gpu`."""

from __future__ import annotations

from typing import Any

from bench.report import shown

KINDS = {  # of kernels, by parts of their names; the first match counts
    "fused by torch.compile": ("triton",),
    "matrix products": ("nvjet", "gemm", "splitK"),
    "attention": ("fmha",),
    "AdamW": ("FusedOptimizer",),
    "casts": ("copy_kernel",),
    "norms": ("layer_norm", "GammaBeta"),
    "sums of bias gradients": ("reduce_kernel",),
    "residual additions": ("CUDAFunctor_add",),
    "GELU and dropout": ("Gelu", "dropout", "masked_scale"),
}
REST = "others"
PROFILED = [(64, "off"), (64, "graphs"), (64, "on"), (512, "graphs"), (512, "on")]  # batch and --compile, by column
SETTING = (
    "The model is BERT-base with random weights, in bf16 with dropout 0.1. A step has two views of up to 32 tokens"
)


def tables(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tables of steps and of kernels, from the phases that have results. found: results by phase."""
    timed = [
        (batch, name, one)
        for batch, phase in ((64, "others"), (64, "batch 64"), (512, "batch 512"))
        for name, one in found.get(phase, {}).items()
        if isinstance(one, dict) and one.get("plain_ms")
    ]
    machine = found.get("setup", {}).get("machine", "")
    made = [step_table(timed), kernel_table(timed)]
    return [{**table, "machine": machine} for table in made if table["rows"]]


def step_table(timed: list[tuple[int, str, dict[str, Any]]]) -> dict[str, Any]:
    """Return the table of milliseconds per step, in the fastest round.

    timed: batch size, contender and results of `gpu.timed` for each row.
    """
    rows = []
    for batch, name, one in timed:
        plain, negatives = min(one["plain_ms"]), min(one["negatives_ms"], default=None)
        memory = shown(one.get("reserved_gib"), 1)
        rows.append([name, batch, shown(plain, 1), shown(negatives, 1), shown(1000 * batch / plain, 0), memory])
    columns = ["contender", "batch", "plain step, ms", "with negatives, ms", "sentences/s, plain", "GPU GiB"]
    note = f"{SETTING}, or four with negatives. All times are from the fastest round."
    return {"title": "A training step on a GPU", "columns": columns, "rows": rows, "note": note}


def kernel_table(timed: list[tuple[int, str, dict[str, Any]]]) -> dict[str, Any]:
    """Return the table of the time of kernels in a step without negatives, in ms.

    Rows are kinds of kernels, columns are the settings of PROFILED.
    """
    wanted = [(batch, f"una_fast, --compile {how}") for batch, how in PROFILED]
    timed = [row for row in timed if row[:2] in wanted and "profile" in row[2]]
    profiles = [one["profile"] for *_, one in timed]
    times = [kernel_times(profile) for profile in profiles]
    rows = [[kind, *(shown(of[kind], 1) for of in times)] for kind in (*KINDS, REST) if any(of[kind] for of in times)]
    rows.append(["all kernels", *(shown(profile["busy_us"] / 1000, 1) for profile in profiles)])
    rows.append(["number of kernels", *(f"{profile['kernels']:,.0f}" for profile in profiles)])
    ways = (f"batch {batch}, {name.removeprefix('una_fast, ')}" for batch, name, _ in timed)
    columns = ["kernels of a plain step, ms", *ways]
    rest = f"The 25 slowest kernels are in the named rows, all others in `{REST}`."
    note = f"{SETTING}. {rest}"
    table = {"title": "Where a step's time on a GPU goes", "columns": columns, "note": note}
    return {**table, "rows": rows if times else []}


def kernel_times(profile: dict[str, Any]) -> dict[str, float]:
    """Return milliseconds per step by kind of kernel."""
    times = dict.fromkeys((*KINDS, REST), 0.0)
    for name, _, microseconds in profile["longest"]:
        kind = next((kind for kind, parts in KINDS.items() if any(part in name for part in parts)), REST)
        times[kind] += microseconds / 1000
    times[REST] += profile["busy_us"] / 1000 - sum(times.values())
    return times
