"""Text file -> saved index -> mapped index: time and peak memory, compared with the plain reference."""

import json
import subprocess
import sys
from pathlib import Path

import una_fast
from bench import peers
from support import reference

BUILD, LOAD = "index: build and save", "index: load"
PEER_SENTENCES = 2_000
CHILD = """
import json, resource, sys, una_fast
una_fast.build_index(sys.argv[1]).save(sys.argv[2])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps(peak / (2**20 if sys.platform == "darwin" else 2**10)))
"""


def test_build(note, size: int, corpus: Path, tmp_path: Path) -> None:
    folders = (tmp_path / f"index_{i}" for i in range(100))
    peak = _peak_mib(corpus, tmp_path / "child")
    rounds = 3 if size < 1_000_000 else 1
    note(
        BUILD,
        size,
        "una_fast",
        size,
        lambda: una_fast.build_index(corpus).save(next(folders)),
        rounds,
        peak_mib=peak,
    )


def test_build_reference(note, size: int, lines: list[str]) -> None:
    words = peers.nltk_words(lines[:PEER_SENTENCES])
    note(BUILD, size, "plain Python, its words ready", len(words), lambda: reference.ranking(words))


def test_load(note, size: int, index: una_fast.Index) -> None:
    loaded = note(LOAD, size, "una_fast", size, lambda: una_fast.load_index(index.path), rounds=10)
    assert loaded.n_documents == size


def _peak_mib(corpus: Path, folder: Path) -> float:
    """Peak resident memory, in MiB, of a process that only builds and saves the index."""
    out = subprocess.run(
        [sys.executable, "-c", CHILD, corpus, folder], check=True, capture_output=True, text=True
    ).stdout
    return round(json.loads(out), 1)
