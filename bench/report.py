"""Saved results -> the tables of the README, between its markers: ``python -m bench.report``.

Reads ``results/benchmarks.json`` (what pytest-benchmark saved) and every other ``results/*.json``, which holds
{"tables": [{"title", "columns", "rows"[, "machine", "note"]}, ...]} or one such table by itself. Ratios are
taken within one run, never between files.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.peers import RELEASED_NEGATIVE_IDS, RELEASED_STATISTICS

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
README = FOLDER.parent / "README.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
NLTK = "NLTK word_tokenize"
RELEASED = {  # operation: passes of NLTK that the released code takes for it
    "index: build and save": RELEASED_STATISTICS,
    "negative_ids": RELEASED_NEGATIVE_IDS,
}
Cells = dict[str, dict[int, float]]  # contender -> size of the corpus -> microseconds a sentence


def main() -> int:
    """Write the tables into the README; 2 if there is nothing to write or nowhere to write it."""
    saved = RESULTS / "benchmarks.json"
    if not saved.is_file():
        print(f"error: {saved} is not there: run `make bench`", file=sys.stderr)
        return 2
    text = README.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        print(f"error: {README} lacks the line {BEGIN} or {END}", file=sys.stderr)
        return 2
    others = sorted(path for path in RESULTS.glob("*.json") if path != saved)
    tables = [table for path in others for table in _tables(_load(path))]
    parts = [benchmark_tables(_load(saved)), *map(single_table, tables)]
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    README.write_text("\n\n".join([before + BEGIN, *parts, END + after]), encoding="utf-8")
    return 0


def benchmark_tables(saved: dict[str, Any]) -> str:
    """One table an operation: contenders down, sizes of the corpus across, microseconds a sentence."""
    notes = [{"seconds": run["stats"]["min"], **run["extra_info"]} for run in saved["benchmarks"]]
    operations: dict[str, Cells] = {}
    for note in notes:
        if note["sentences"]:
            cells = operations.setdefault(note["operation"], {})
            cells.setdefault(note["contender"], {})[note["size"]] = note["seconds"] / note["sentences"] * 1e6
    nltk = operations.get("words", {}).get(NLTK, {})
    parts = [machine_line(saved["machine_info"]["una_fast"])]
    for operation, cells in operations.items():
        if operation in RELEASED and nltk:
            label = f"released code ({RELEASED[operation]:g} passes of NLTK)"
            cells[label] = {size: RELEASED[operation] * time for size, time in nltk.items()}
        parts.append(f"**{operation}**, microseconds a sentence\n\n{_times(cells)}")
        if operation.startswith("index"):
            mine = [note for note in notes if (note["operation"], note["contender"]) == (operation, "una_fast")]
            parts.append(_wholes(mine))
    once = [[note["contender"], _short(note["seconds"] * 1e3)] for note in notes if not note["sentences"]]
    return "\n\n".join([*parts, table(["before the first call, once a process", "milliseconds"], once)])


def single_table(saved: dict[str, Any]) -> str:
    """A table that a script measured and saved by itself."""
    lines = [f"**{saved['title']}**", table(saved["columns"], saved["rows"])]
    lines += [saved[key] for key in ("machine", "note") if saved.get(key)]
    return "\n\n".join(lines)


def machine_line(machine: dict[str, Any]) -> str:
    """The machine and what ran on it, as one paragraph."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"Measured on {machine['cores']} cores of {machine['processor']}, {machine['memory_gib']} GiB, "
        f"{machine['system']}, Python {machine['python']}, {versions}; corpus: {machine['corpus']}. "
        "Best rounds of one run; the last column divides by the first row's time at the largest size they share."
    )


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table, its first column left, the others right."""
    columns = list(columns)
    lines = [columns, [":--", *["--:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _times(cells: Cells) -> str:
    sizes = sorted({size for times in cells.values() for size in times})
    base = next(iter(cells.values()))
    rows = []
    for contender, times in cells.items():
        shared = [size for size in sizes if size in times and size in base]
        ratio = f"{_short(times[shared[-1]] / base[shared[-1]])} x" if shared else ""
        rows.append([contender, *(_short(times[size]) if size in times else "" for size in sizes), ratio])
    return table(["", *(f"{size:,} sentences" for size in sizes), "ratio"], rows)


def _wholes(notes: list[dict[str, Any]]) -> str:
    """Time and memory of the whole corpus, a row a size."""
    rows = [[f"{note['size']:,} sentences", _short(note["seconds"] * 1e3)] for note in notes]
    columns = ["una_fast, the whole corpus", "milliseconds"]
    if "peak_mib" in notes[0]:
        columns.append("peak MiB of the process")
        rows = [[*row, f"{note['peak_mib']:,.0f}"] for row, note in zip(rows, notes, strict=True)]
    return table(columns, rows)


def _short(number: float) -> str:
    """Three significant digits, with thousands separated."""
    if number >= 100:
        return f"{number:,.0f}"
    return re.sub(r"^0\.00+$", "0", f"{number:.{2 if number >= 0.1 else 3}f}" if number < 10 else f"{number:.1f}")


def _tables(saved: dict[str, Any]) -> list[dict[str, Any]]:
    return saved.get("tables", [saved])


def _load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
