"""Builds an index in stages within a memory limit, on one machine or many. Stages exchange data through files.

The building process reads the corpus and writes it to files, the splits. Each stage is a list of tasks (tasks.py), and
each task writes one file, completely or not at all. If a worker is lost, its task runs again and writes the same bytes.
A restarted build reads the corpus again, and reuses what the first stage, the scan, wrote for unchanged splits.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from una_fast.arrays import StringTable, check_id_range
from una_fast.corpus.documents import Reading, joined
from una_fast.corpus.sources import all_blank, open_sources, read_blocks
from una_fast.corpus.word_tokenizers import WordTokenizer
from una_fast.errors import InputError
from una_fast.index import tasks
from una_fast.index.executors import Runner
from una_fast.index.index import DTYPES, KIND, LAYOUT, SCORES, index_meta
from una_fast.index.tasks import PackFiles
from una_fast.parallel import n_cores
from una_fast.storage.array_folder import Manifest, check_array_folder, publish, resolved
from una_fast.storage.files import checksum_of, locked, remove_partial, unwritable

SCAN_LAYOUT = 7  # version of the files that the scan writes; files of other versions are not reused


def build_in_stages(
    corpus: Any,
    tokenizer: WordTokenizer,
    reading: Reading,
    folder: str | Path,
    memory: str | int | None,
    executor: Any,
    n_jobs: int | None,
    progress: bool,
) -> None:
    """Build an index in `folder`, as `una_fast.build_index` documents."""
    target, sources = resolved(folder), open_sources(corpus, reading)
    check_array_folder(target, KIND)
    summaries: list[dict[str, Any]] = []
    settings = repr([SCAN_LAYOUT, index_meta([], tokenizer)])
    workers = ThreadPoolExecutor(n_cores(n_jobs)) if executor is None else nullcontext(executor)
    with workers as executor, open_work(target) as work:
        runner = Runner.on(executor, work, memory, progress)
        scans, text_bytes = _scan(read_blocks(sources, summaries), tokenizer, settings, work, runner)
        n_documents = sum(source["n_documents"] for source in summaries)
        if not any(scan.length("words_values") for scan in scans):
            _delete(work, "scan-*.pack")
            raise all_blank(n_documents)
        checksums = _join(scans, runner.n_partitions(text_bytes), n_documents, runner)
        manifest = Manifest(KIND, LAYOUT, index_meta(summaries, tokenizer), checksums)

        def move() -> Manifest:
            for name, file in manifest.files.items():
                (work / f"{name}.npy").replace(target / file)
            return manifest

        publish(target, KIND, move)
        _delete(work, "*.pack")


def work_folder(folder: Path) -> Path:
    """Return the folder for the build's temporary files, next to `folder`."""
    return folder.parent / f".{folder.name}.building"


@contextmanager
def open_work(folder: Path) -> Iterator[Path]:
    """Create the work folder of the index in `folder`, and lock it for a `with` block.

    Before the block, the files of interrupted builds are deleted, except the results of the first stage. After the
    block, the temporary copy of the corpus is deleted, and so is the work folder if it is empty.
    """
    work = work_folder(folder)
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(work, error, "nothing was changed") from error
    with locked(work, wait=False) as is_free:
        if not is_free:
            raise InputError(f"{work}: another process is building there; wait until it ends, or give another folder")
        remove_partial(work)
        _delete(work, *(f"{stage}-*.pack" for stage in ("split", "merge", "rank", "label")), "*.npy")
        try:
            yield work
        finally:
            with suppress(OSError):
                _delete(work, "split-*.pack")
                work.rmdir()


def _delete(work: Path, *patterns: str) -> None:
    for pattern in patterns:
        for path in [*work.glob(pattern)]:
            path.unlink(missing_ok=True)


def _scan(
    blocks: Iterator[StringTable], tokenizer: WordTokenizer, settings: str, work: Path, runner: Runner
) -> tuple[PackFiles, int]:
    """Divide the corpus into splits, and scan each split that no earlier build with the same `settings` has scanned.

    Returns the files that `tasks.scan_split` wrote, and the size of the corpus in bytes of UTF-8.
    """
    n, text_bytes = 0, 0

    def new_splits() -> Iterator[tuple[Any, ...]]:
        nonlocal n, text_bytes
        for block in joined(blocks, runner.split_bytes()):
            split, scan = (work / f"{stage}-{n}.pack" for stage in ("split", "scan"))
            n, text_bytes = n + 1, text_bytes + len(block.utf8)
            arrays = (block.utf8.data, block.offsets.data)
            input_checksum = checksum_of([settings.encode(), tokenizer.words_of_sample(block), *arrays])
            if not tasks.is_pack_of(scan, input_checksum):
                scan.unlink(missing_ok=True)
                tasks.write_pack(split, vars(block), input_checksum)
                yield split, tokenizer, scan

    runner.run("scan", tasks.scan_split, new_splits())
    return PackFiles(work, "scan", n), text_bytes


def _join(scans: PackFiles, n: int, n_documents: int, runner: Runner) -> dict[str, str]:
    """Run the stages after the scan, which write the arrays of the index. Return the arrays' checksums by name.

    There are n hash ranges and n rank ranges.
    """
    work, writes = scans.work, []
    for kind, rows in tasks.ROWS_WITH.items():
        merged, ranked, labelled = (PackFiles(work, f"{stage}-{kind}", n) for stage in ("merge", "rank", "label"))
        runner.run("merge", tasks.merge_strings, ((kind, scans, i, n_documents, merged) for i in range(n)))
        starts = tasks.cut_ranks(merged)
        check_id_range(sum(starts[-1]), kind)
        ranges = ((kind, merged, starts[i], starts[i + 1], ranked.path(i)) for i in range(n))
        runner.run("rank", tasks.rank_strings, ranges)
        runner.run("label", tasks.label_strings, ((merged, ranked, i, labelled.path(i)) for i in range(n)))
        for name in DTYPES:
            if name.startswith(rows):
                writes.append((name, scans, labelled, work / f"{name}.npy"))
            elif name.startswith(kind) or (kind == "terms" and name in SCORES):
                writes.append((name, ranked, labelled, work / f"{name}.npy"))
    checksums = runner.run("write", tasks.write_array, writes)
    return {name: checksum for (name, *_), checksum in zip(writes, checksums, strict=True)}
