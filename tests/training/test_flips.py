"""Random single-bit flips in all files of an index, of a stopped build and of last/: an error, or the same numbers.

UNA_FAST_FLIPS: how many flips of each kind.
"""

import os
import random
import shutil
from functools import partial

import pytest
from torch.utils._pytree import tree_leaves

import una_fast
from support.small_runs import at_step, options, train_here
from support.staged import Calling, Killed, cut, failing_syncs, flip
from support.tokenizer_families import bert_uncased
from train.record.checkpoint import load_checkpoint
from una_fast.errors import InputError
from una_fast.index.stages import work_folder

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
FLIPS = int(os.environ.get("UNA_FAST_FLIPS", "40"))
WORDS = "the of old song album class module name returns value object state can't naïve straße 3,000 (a) e.g.".split()


def flips(folder, before=shutil.rmtree):
    """Flip one bit of one file after another, chosen at random; between them the folder is what it was."""
    draw, whole = random.Random(7), {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for _ in range(FLIPS):
        path = draw.choice([path for path in sorted(whole) if whole[path]])
        bit = draw.randrange(8 * len(whole[path]))
        before(folder)
        for other, content in whole.items():
            other.parent.mkdir(parents=True, exist_ok=True)
            other.write_bytes(content)
        flip(path, bit)
        yield f"bit {bit} of {path.relative_to(folder)}"


def corpus(n=60):
    draw = random.Random(3)
    return [" ".join(draw.choices(WORDS, k=draw.randrange(2, 12))).capitalize() for _ in range(n)]


def numbers(folder):
    """The texts and ids of an index, through its caches."""
    index = una_fast.load_index(folder)
    una = una_fast.Augmenter(index, radius=3, seed=1, tokenizer=bert_uncased(), n_jobs=1)
    rows = range(len(index))
    return [*index], una.texts(rows), una.token_ids(rows)["input_ids"].tolist()


def test_flips_of_an_index_and_its_caches(tmp_path):
    folder = tmp_path / "index"
    una_fast.build_index(corpus(), n_jobs=1).save(folder)
    expected, found = numbers(folder), 0
    for what in flips(folder):
        try:
            una_fast.load_index(folder, verify=True)
            noticed = False
        except InputError:
            noticed = True
        try:
            assert numbers(folder) == expected or noticed, what
        except InputError:
            assert noticed, what
        found += noticed
    assert found > 0.98 * FLIPS  # others are in the name of the manifest's checksum


def test_flips_of_a_stopped_build(tmp_path, monkeypatch):
    path, folder = tmp_path / "corpus.txt", tmp_path / "index"
    path.write_text("\n".join(corpus(200)))
    cut(monkeypatch, split_bytes=700, n_partitions=2)
    build = partial(una_fast.build_index, path, folder=folder, memory="1GB", executor=Calling())
    build()
    expected = {file.name: file.read_bytes() for file in folder.iterdir()}
    shutil.rmtree(folder)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        failing_syncs(patch, 20, Killed())
        build()
    assert [*work_folder(folder).glob("scan-*.pack")]
    for what in flips(work_folder(folder), partial(shutil.rmtree, ignore_errors=True)):
        shutil.rmtree(folder, ignore_errors=True)
        build()
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == expected, what


def test_flips_of_a_checkpoint(tmp_path, tiny_model):
    values = options(tmp_path, tiny_model, max_steps=6)
    with at_step(3, lambda trainer: 1 / 0), pytest.raises(ZeroDivisionError):
        train_here(values)
    output = tmp_path / "run"
    expected, refused = load_checkpoint(output), 0
    for what in flips(output / "last"):
        try:
            progress, state = load_checkpoint(output)
            assert progress == expected[0], what
            assert all(map(equal, tree_leaves(state), tree_leaves(expected[1]))), what
        except InputError:
            refused += 1
    assert refused > 0.9 * FLIPS


def equal(one, other):
    return bool((one == other).all()) if hasattr(one, "all") else one == other
