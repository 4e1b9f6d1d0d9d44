"""Files of surface="kept" beside the index: a flipped bit is noticed, and no negative is made of it."""

from pathlib import Path

import pytest

import una_fast
from support.tokenizer_families import bert_uncased
from una_fast.errors import InputError

LINES = ["She plays the violin in Oslo.", "Trains leave Oslo at ten.", '"Yes," he said; it can\'t be.']


def test_a_flipped_bit_in_any_file_is_noticed(tmp_path: Path) -> None:
    una_fast.build_index(LINES).save(tmp_path / "index")

    def negatives() -> list[list[int]]:
        index = una_fast.load_index(tmp_path / "index")
        augmenter = una_fast.Augmenter(index, radius="50%", surface="kept", tokenizer=bert_uncased())
        return augmenter.negative_ids(range(len(LINES)))["input_ids"].tolist()

    assert negatives() == negatives()
    files = sorted((tmp_path / "index").glob("kept-*/*.npy"))
    assert files
    for path in files:
        right = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
        with pytest.raises(InputError, match=path.name):
            negatives()
        path.write_bytes(right)
    assert negatives()
