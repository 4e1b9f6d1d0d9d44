"""Building, saving and loading an index: time and peak memory, compared with a plain Python reference."""

import subprocess
import sys
from pathlib import Path

import una_fast
from bench import peers
from support import reference

BUILD, LOAD = "index: build and save", "index: load"
PEER_SENTENCES = 2_000
STATUS = Path("/proc/self/status")  # of Linux; ru_maxrss of a child begins at the peak of its parent
CHILD = f"""
import sys, una_fast
una_fast.build_index(sys.argv[1]).save(sys.argv[2])
print(next(line.split()[1] for line in open("{STATUS}") if line.startswith("VmHWM:")))
"""


def test_build(note, size: int, corpus: Path, tmp_path: Path) -> None:
    folders = (tmp_path / f"index_{i}" for i in range(100))
    peak = {"peak_mib": _peak_mib(corpus, tmp_path / "child")} if STATUS.exists() else {}
    rounds = 3 if size < 1_000_000 else 1
    note(BUILD, size, "una_fast", size, lambda: una_fast.build_index(corpus).save(next(folders)), rounds, **peak)


def test_build_reference(note, size: int, lines: list[str]) -> None:
    words = peers.nltk_words(lines[:PEER_SENTENCES])
    note(BUILD, size, "plain Python, given the words", len(words), lambda: reference.ranking(words))


def test_load(note, size: int, index: una_fast.Index) -> None:
    loaded = note(LOAD, size, "una_fast", size, lambda: una_fast.load_index(index.path), rounds=10)
    assert loaded.n_documents == size


def _peak_mib(corpus: Path, folder: Path) -> float:
    """Return the peak resident memory, in MiB, of a process that only builds and saves the index."""
    words = [sys.executable, "-c", CHILD, corpus, folder]
    return round(int(subprocess.run(words, check=True, capture_output=True, text=True).stdout) / 1024, 1)
