"""Write saved results into docs/benchmarks.md and the table of the README: ``python -m bench.report``.

Text outside the markers of both pages does not change. The command reads ``results/benchmarks.json``, which
pytest-benchmark saved, and every other ``results/*.json`` except evidence.json. Such a file contains {"tables":
[{"title", "columns", "rows"[, "machine", "note"]}, ...]}, a single table, or the benchmarks of a separate run. Every
ratio compares times of the same file.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench import script
from bench.peers import RELEASED_STATISTICS, RELEASED_TOKEN_IDS
from bench.script import DOCS, RESULTS
from train.record.environment import machine, versions
from train.report.runs import compare
from una_fast.errors import InputError
from una_fast.storage.files import read_json, write_json

README, PAGE = script.ROOT / "README.md", DOCS / "benchmarks.md"
EVIDENCE = RESULTS / "evidence.json"
NLTK = "NLTK word_tokenize"
RELEASED = {  # operation: time of the released code, as a multiple of the time of NLTK's word_tokenize
    "index: build and save": RELEASED_STATISTICS,
    "token_ids": RELEASED_TOKEN_IDS,
}
DEFAULT_SURFACE = "una_fast, the default surface"
HEADLINES = (  # name of the row, operation of a benchmark, our contender, the peer
    ("a negative as token ids, lower-case words", "token_ids", "una_fast, batches of 4,096, 1 thread", "released code"),
    (
        "... with its sentence's case and punctuation (default)",
        "token_ids",
        f"{DEFAULT_SURFACE}, 1 thread",
        "fast tokenizer",
    ),
    ("a negative as text (default)", "negatives as text", DEFAULT_SURFACE, "nlpaug TfIdfAug"),
    (
        "a near-miss as token ids, from the second epoch",
        "token_ids",
        "una_fast.NearMisses, polarity:1,number:4, 1 thread",
        "fast tokenizer",
    ),
    ("building an index, per sentence, all cores", "index: build and save", "una_fast", "released code"),
    ("a sentence as token ids, all cores", "anchors: encode", "una_fast, terms included", "fast tokenizer"),
)
PEERS = (
    "una_fast makes negatives on one thread. nlpaug and the paper's released code use one core. The fast tokenizer "
    "uses all. The released code's times are [estimates](docs/benchmarks.md#how-to-read-them)."
)
WIDTH = 120  # characters per line of the README
Cells = dict[str, dict[int, float]]  # contender -> size of the corpus -> microseconds per sentence


def write_pages() -> None:
    """Write the tables of all saved results into the README and docs/benchmarks.md."""
    file = RESULTS / "benchmarks.json"
    if not file.is_file():
        raise InputError(f"{file}: does not exist: run `make bench`")
    saved = read_json(file)
    others = sorted(path for path in RESULTS.glob("*.json") if path not in (file, EVIDENCE))
    further = [part for path in others for part in page_parts(read_json(path))]
    write_between_marks(README, [headline_table(saved)])
    write_between_marks(PAGE, [benchmark_tables(saved), *further])


def write_between_marks(path: Path, parts: list[str], name: str = "measured") -> None:
    """Replace the text of a page between <!-- NAME: begin --> and <!-- NAME: end --> with the parts.

    Raises:
        InputError: the page lacks one of the two lines.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = path.read_text(encoding="utf-8")
    if begin not in text or end not in text:
        raise InputError(f"{path}: has no line {begin} or {end}: restore it")
    before, _, rest = text.partition(begin)
    path.write_text("\n\n".join([before + begin, *parts, end + rest.partition(end)[2]]), encoding="utf-8")


def headline_table(saved: dict[str, Any]) -> str:
    """Return the README's table: for each of HEADLINES our time, the peer's time and their ratio.

    All are measured on the largest corpus.
    """
    operations, rows = operation_times(saved), []
    for work, operation, ours, peer in HEADLINES:
        times = operations[operation]
        size = max(times[ours])
        name = next(contender for contender in times if contender.startswith(peer))
        mine, theirs = times[ours][size], times[name][size]
        rows.append([work, f"{_short(mine)} µs", f"{_short(theirs)} µs ({peer})", f"{_short(theirs / mine)}x"])
    machine = saved["machine_info"]["una_fast"]
    where = (
        f"{machine['cores']} cores of {machine['processor']}, Python {machine['python']}, corpus {machine['corpus']}"
    )
    about = textwrap.fill(f"Measured on {where}. {PEERS}", WIDTH, break_on_hyphens=False)
    return f"{table(['work', 'una_fast', 'peer', 'ratio'], rows)}\n\n{about}"


def operation_times(saved: dict[str, Any]) -> dict[str, Cells]:
    """Return microseconds per sentence by operation, contender and corpus size.

    The times of the released code are multiples of NLTK's time.
    """
    operations: dict[str, Cells] = {}
    for note in _notes(saved):
        if note["sentences"]:
            cells = operations.setdefault(note["operation"], {})
            cells.setdefault(note["contender"], {})[note["size"]] = note["seconds"] / note["sentences"] * 1e6
    nltk = operations.get("words", {}).get(NLTK, {})
    for operation, factor in RELEASED.items():
        if operation in operations and nltk:
            label = f"released code ({factor:g} times NLTK)"
            operations[operation][label] = {size: factor * time for size, time in nltk.items()}
    return operations


def benchmark_tables(saved: dict[str, Any]) -> str:
    """Return one table per operation with several contenders, in microseconds per sentence.

    Contenders are rows, the smallest and the largest corpus are columns.
    """
    notes = _notes(saved)
    parts = [machine_line(saved["machine_info"]["una_fast"])]
    for operation, cells in operation_times(saved).items():
        if len(cells) > 1:
            parts.append(f"## {operation}\n\n{_times(cells)}")
        mine = [note for note in notes if note["operation"] == operation and "peak_mib" in note]
        if mine:
            parts.append(_memory(mine))
    once = [[note["contender"], _short(note["seconds"] * 1e3)] for note in notes if not note["sentences"]]
    if once:
        parts.append(f"## first call\n\n{table(['once per process', 'milliseconds'], once)}")
    return "\n\n".join(parts)


def page_parts(saved: dict[str, Any]) -> list[str]:
    """Return the sections of docs/benchmarks.md that show `saved`, the content of a file in results/."""
    return [benchmark_tables(saved)] if "benchmarks" in saved else [single_table(one) for one in _tables(saved)]


def _notes(saved: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"seconds": run["stats"]["min"], **run["extra_info"]} for run in saved["benchmarks"]]


def single_table(saved: dict[str, Any]) -> str:
    """Return the section of docs/benchmarks.md for one table that a script of bench/ saved."""
    lines = [f"## {saved['title']}", table(saved["columns"], saved["rows"])]
    lines += [saved["note"]] if saved.get("note") else []
    lines += [f"Machine: {saved['machine']}."] if saved.get("machine") else []
    return "\n\n".join(lines)


def machine_line(machine: dict[str, Any]) -> str:
    """Return the text above the tables: the machine, the versions of the packages, and what a time is."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"- Machine: {machine['cores']} cores of {machine['processor']}, {machine['memory_gib']} GiB, "
        f"{machine['system']}\n"
        f"- Versions: Python {machine['python']}, {versions}\n"
        f"- Corpus: {machine['corpus']}\n\n"
        "Times are microseconds per sentence, in the fastest round of one run. The ratio divides a row's time by "
        "the first row's, at the largest corpus size that both rows have."
    )


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a Markdown table with the first column aligned left and the others right."""
    columns = list(columns)
    head, *lines = (f"| {' | '.join(map(str, line))} |" for line in (columns, *rows))
    return "\n".join([head, "|:--|" + "--:|" * (len(columns) - 1), *lines])


def shown(number: float | None, digits: int) -> str:
    """Format a number with `digits` decimals for a table cell. None gives an empty cell."""
    return "" if number is None else f"{number:,.{digits}f}"


def over_seeds(values: Sequence[float]) -> str:
    """Return " ± " and half of the 95% interval of a mean over seeds, or "" for fewer than three seeds."""
    found = compare(dict.fromkeys(range(len(values)), 0.0), dict(enumerate(values)))
    return f" ± {(found.high - found.low) / 2:.1f}" if found and found.n > 2 else ""


def described() -> str:
    """Describe this machine and its software in one line."""
    return ", ".join(f"{name} {value}" for name, value in {**machine(), **versions()}.items())


def save_tables(path: Path, tables: list[dict[str, Any]], measured: dict[str, Any]) -> None:
    """Save tables for docs/benchmarks.md, and the measured figures from which they were made."""
    write_json(path, {"tables": tables, "measured": measured})


def _times(cells: Cells) -> str:
    sizes = sorted({size for times in cells.values() for size in times})
    columns = sorted({sizes[0], sizes[-1]})
    base = next(iter(cells.values()))
    rows = []
    for contender, times in cells.items():
        shared = [size for size in sizes if size in times and size in base]
        ratio = f"{_short(times[shared[-1]] / base[shared[-1]])}x" if shared else ""
        rows.append([contender, *(_short(times[size]) if size in times else "" for size in columns), ratio])
    return table(["", *(f"{size:,} sentences" for size in columns), "ratio"], rows)


def _memory(notes: list[dict[str, Any]]) -> str:
    """Return a table of the memory that building an index takes, one row per corpus size."""
    rows = [[f"{note['size']:,} sentences", f"{note['peak_mib']:,.0f}"] for note in notes]
    return table(["una_fast, the whole corpus", "peak MiB of the process"], rows)


def _short(number: float) -> str:
    """Format a number with three significant digits, and commas between thousands."""
    if number >= 100:
        return f"{number:,.0f}"
    return re.sub(r"^0\.00+$", "0", f"{number:.{2 if number >= 0.1 else 3}f}" if number < 10 else f"{number:.1f}")


def _tables(saved: dict[str, Any]) -> list[dict[str, Any]]:
    return saved.get("tables", [saved] if "columns" in saved else [])


if __name__ == "__main__":
    sys.exit(script.run(__doc__, write_pages))
