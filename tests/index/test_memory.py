"""Views of the whole corpus check their size before they take memory."""

import warnings

import pytest

import una_fast
from una_fast import memory
from una_fast.errors import InputError, InputWarning


@pytest.mark.parametrize(
    ("view", "n_bytes"), [(lambda index: index.counts, 8 * 3 + 16 * 5), (lambda index: index.tfidf(), 8 * 3 + 48 * 5)]
)
def test_whole_corpus_views_say_their_size(view, n_bytes, monkeypatch) -> None:
    index = una_fast.build_index(["a b a", "b c"])
    monkeypatch.setattr(memory, "free_memory", lambda: n_bytes - 1)
    with pytest.raises(InputError, match=f"takes {n_bytes} bytes, and {n_bytes - 1} bytes of memory are free"):
        view(index)
    monkeypatch.setattr(memory, "free_memory", lambda: n_bytes)
    with pytest.warns(InputWarning, match=f"takes {n_bytes} bytes, and {n_bytes} bytes of memory are free"):
        view(index)
    for free in (10**6, None):
        monkeypatch.setattr(memory, "free_memory", lambda free=free: free)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            view(una_fast.build_index(["a b a", "b c"]))


def test_free_memory_is_less_than_a_machine_has() -> None:
    free = memory.free_memory()
    assert free is None or 2**20 < free < 2**50
