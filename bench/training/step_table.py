"""Make a table of measured steps, print it, and save it under results/ with a description of the machine."""

from __future__ import annotations

import contextlib
import json
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.training.contenders import ALPHA, Bench, Contender
from bench.training.utilisation import FORMULA, peak, step_flops
from train.encoder.pretrained import load_config
from train.record.environment import machine, versions
from una_fast.errors import InputError
from una_fast.storage.files import write_file
from una_fast.text_table import aligned

RESULTS = Path(__file__).parents[1] / "results"
COLUMNS = [
    "contender",
    "plain step, ms",
    "with negatives, ms",
    f"mean, negatives on every {ALPHA}th step, ms",
    "sentences/s, plain",
    "utilisation, plain",
    "plain speed relative to the released code",
    "mean speed relative to the released code",
]
BASE = "released code, fp32"


def mean_step(plain: float | None, negatives: float | None) -> float | None:
    """Return the mean seconds per step of a training in which every ALPHA-th step has negatives."""
    return None if plain is None or negatives is None else plain + (negatives - plain) / ALPHA


def summarise(found: Mapping[str, Mapping[str, list[float]]], bench: Bench, contenders: Iterable[Contender]) -> dict:
    """Return, by contender, what a results file contains: median seconds over the rounds, and utilisation.

    found: the seconds from `contenders.measure`.
    """
    steps = [bench.maker().make(number, 0, bench.rows(number)) for number in range(1, ALPHA)]
    config = load_config(str(bench.values["model"]), 0.1)
    lengths = [part["attention_mask"].sum(1).numpy() for batch in steps for part in batch.parts]
    flops = sum(step_flops(config, part) for part in lengths) / len(steps)
    peaks = {one.precision: peak(one.precision, bench.device) for one in contenders if one.precision}
    kept = {}
    for one in contenders:
        times = found[one.name]
        plain, negatives = (statistics.median(part) if part else None for part in (times["plain"], times["negatives"]))
        assert plain is not None
        used = None if one.precision is None else flops / plain / peaks[one.precision][0]
        about = {} if one.precision is None else dict(zip(("peak", "peak_from"), peaks[one.precision], strict=True))
        kept[one.name] = {
            "plain": plain, "negatives": negatives, "sentences": bench.batch, "flops": flops, "used": used, **about
        }  # fmt: skip
    return kept


def rows(kept: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Return one table row per contender, with the cells of COLUMNS. A cell is empty if nothing was measured.

    kept: from `summarise`.
    """
    base = kept.get(BASE)
    lines = []
    for name, one in kept.items():
        mean = mean_step(one["plain"], one["negatives"])
        encodes = one["used"] is not None
        ratios = [None, None]
        if base and encodes:
            of_mean = mean_step(base["plain"], base["negatives"])
            ratios = [base["plain"] / one["plain"], mean and of_mean and of_mean / mean]
        times = [shown(cell and 1000 * cell, 1) for cell in (one["plain"], one["negatives"], mean)]
        used = f"{100 * one['used']:.1f}%" if encodes else ""
        lines.append([name, *times, shown(one["sentences"] / one["plain"], 0), used, *(shown(r, 2) for r in ratios)])
    return lines


def shown(number: float | None, digits: int) -> str:
    """Format a number with `digits` decimals for a table cell. None gives an empty cell."""
    return "" if number is None else f"{number:,.{digits}f}"


def step_table(title: str, kept: Mapping[str, Mapping[str, Any]], note: str) -> dict[str, Any]:
    """Return a table in the format that bench/report.py reads."""
    peaks = {
        f"{name.split(', ')[1]} {one['peak'] / 1e12:,.1f} TFLOP/s ({one['peak_from']})"
        for name, one in kept.items()
        if one["used"] is not None
    }
    return {
        "title": title,
        "columns": COLUMNS,
        "rows": rows(kept),
        "machine": described(),
        "note": f"{note} {FORMULA}: {', '.join(sorted(peaks))}." if peaks else note,
    }


def described() -> str:
    """Describe this machine and its software in one line."""
    return ", ".join(f"{name} {value}" for name, value in {**machine(), **versions()}.items())


def show(tables: Iterable[dict[str, Any]]) -> None:
    """Print tables."""
    for table in tables:
        print(f"\n{table['title']}\n")
        print(*aligned([table["columns"], *table["rows"]], left=(0,)), sep="\n")
        print(f"\n{table['note']}")


def sizes(model: str) -> str:
    """Describe an encoder by its sizes, because the name of its folder may be arbitrary."""
    config = load_config(model, 0.1)
    return f"{config.model_type.upper()} with {config.num_hidden_layers} layers of width {config.hidden_size}"


def save(path: Path, tables: list[dict[str, Any]], measured: dict[str, Any]) -> None:
    """Save tables for bench/report.py, and the measured figures from which the tables were made.

    Earlier results in the file are replaced.

    Raises:
        InputError: the file exists and does not contain such results.
    """
    with contextlib.suppress(FileNotFoundError):
        if not path.read_bytes().startswith(b'{\n "tables": ['):
            raise InputError(f"{path}: exists and contains no tables of this command: choose another name")
    write_file(path, (json.dumps({"tables": tables, "measured": measured}, indent=1) + "\n").encode())
