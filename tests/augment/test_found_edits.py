"""The flat arrays of edits: what they contain, the kernels that draw and write them, and the index's cache of them."""

from bisect import bisect
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import una_fast
from una_fast import NearMisses
from una_fast._kernels.draws.edits import NO_KIND, draw_edits
from una_fast.arrays import StringTable
from una_fast.augment import found_edits
from una_fast.augment.edits import Edit, listed_edits
from una_fast.augment.found_edits import DTYPES, DrawnEdits, _checksum, _fit, edit_writer, find_edits
from una_fast.augment.split_sentences import SplitSentences
from una_fast.augment.word_lists import read_word_lists
from una_fast.storage.array_folder import Arrays

ENGLISH = read_word_lists()
LINES = [
    "Is it safe? I can go.",
    "caf\u00e9 \u4f60 \U0001f600 5 is not 3",
    "",
    "none",
    "It is good in May",
    "we do not  go",
    " x ",
]
LINES *= 3


def source_of(lines: list[str]) -> SplitSentences:
    return NearMisses(edits=["number"])._read(lines)


def edits_of(text: str) -> list[list[Edit]]:
    return [*listed_edits(text, ENGLISH).values()]


def arrays_of(lines: list[str]) -> Arrays:
    def find(rows, found):
        for row in rows.tolist():
            ENGLISH.finder.find(lines[row], found)
            found.to_bytes(lines[row], 2)

    return find_edits(find, np.arange(len(lines)))


def listed(arrays: Arrays, row: int, text: str) -> list[list[tuple[int, int, tuple[str, ...]]]]:
    """Return the edits of a row in the arrays, by kind, with places in characters."""
    options = StringTable(arrays["options_utf8"], arrays["options_offsets"])
    lists = arrays["list_bounds"]
    utf8, kinds = text.encode(), []
    for kind in range(2):
        bounds = arrays["edits_indptr"][2 * row + kind :][:2]
        kinds.append([])
        for edit in range(*bounds):
            start, stop = (len(utf8[: arrays[name][edit]].decode()) for name in ("starts", "stops"))
            number = arrays["edits_values"][edit]
            kinds[-1].append((start, stop, tuple(options[i] for i in range(lists[number], lists[number + 1]))))
    return kinds


@given(st.lists(st.sampled_from(LINES), max_size=12), st.integers(1, 4))
def test_the_arrays_contain_each_edit_of_each_sentence(lines, block):
    with mock.patch.object(found_edits, "BLOCK", block):
        arrays = arrays_of(lines)
    assert {name: array.dtype for name, array in arrays.items()} == DTYPES and len(arrays["edits_indptr"]) == 2 * len(
        lines
    ) + 1
    for row, text in enumerate(lines):
        assert listed(arrays, row, text) == [[one[:3] for one in kind] for kind in edits_of(text)]


def test_threads_and_ctrl_c_leave_the_edits_of_each_sentence():
    """The first draws of an index find all edits: in several threads at once, or again after a Ctrl-C."""
    index = una_fast.build_index([f"There were {n} dogs. {line}" for n, line in enumerate(LINES * 20)])
    rows = np.arange(len(index))
    expected = NearMisses(index).texts(rows)
    near = NearMisses(index)
    with mock.patch.object(near, "_find", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        near.texts(rows)
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(near.texts, np.split(rows, 4))] == [part.tolist() for part in np.split(np.array(expected), 4)]


BITS = st.integers(0, 2**64 - 1)
KINDS = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 4.0]), st.integers(0, 2)), min_size=1, max_size=4)


def plain_draw(bits: list[int], weights: list[float], counts: list[int], by_kind: list[list[int] | None]):
    """Return (kind, place of the edit among those of its kind, option): by weight, then uniformly, then uniformly."""
    fitting = [k for k, n in enumerate(counts) if n and weights[k]] or [k for k, n in enumerate(counts) if n][-1:]
    if not fitting:
        return NO_KIND, -1, -1
    ends = [*accumulate(weights[k] for k in fitting)]
    kind = fitting[min(bisect(ends[:-1], (bits[0] >> 11) * 2.0**-53 * ends[-1]), len(fitting) - 1)]
    if by_kind[kind] is None:
        return kind, -1, -1
    edit = bits[1] * len(by_kind[kind]) >> 64
    return kind, edit, bits[2] * by_kind[kind][edit] >> 64


@given(KINDS, st.lists(st.tuples(BITS, BITS, BITS), min_size=1, max_size=4), st.data())
def test_an_edit_is_drawn_as_the_plain_reference_draws_it(kinds, bits, data):
    """Each listed kind of each row has some edits, each with some options; the other kinds are possible or not."""
    weights, n_rows = [weight for weight, _ in kinds], len(bits)
    places = [k for k, (_, how) in enumerate(kinds) if how]  # the kinds with edits
    sizes = st.lists(st.lists(st.integers(1, 5), max_size=3), min_size=len(places), max_size=len(places))
    rows = [data.draw(sizes) for _ in range(n_rows)]
    possible = [data.draw(st.lists(st.booleans(), min_size=len(kinds), max_size=len(kinds))) for _ in range(n_rows)]
    order = data.draw(st.permutations(range(n_rows)))  # the row of the arrays that has the edits of each row
    by_row = [edits for _, row in sorted(zip(order, rows, strict=True), key=lambda pair: pair[0]) for edits in row]
    flat = [n for edits in by_row for n in edits]
    bounds = np.cumsum([0, *map(len, by_row)], dtype=np.int64)
    listed_at = np.array([places.index(k) if k in places else -1 for k in range(len(kinds))])
    result = draw_edits(
        np.array(order), np.array(bits, np.uint64), np.array(possible, np.uint8), np.array(weights), listed_at,
        len(places), bounds, np.arange(len(flat), dtype=np.int32), np.cumsum([0, *flat], dtype=np.int64),
    )  # fmt: skip
    for i in range(n_rows):
        by_kind = [rows[i][places.index(k)] if k in places else None for k in range(len(kinds))]
        counts = [int(possible[i][k]) if edits is None else len(edits) for k, edits in enumerate(by_kind)]
        kind, edit, option = plain_draw(bits[i], weights, counts, by_kind)
        if edit >= 0:
            edit += bounds[order[i] * len(places) + places.index(kind)]
            option += sum(flat[:edit])
        assert tuple(int(part[i]) for part in result) == (kind, edit, option)


TEXT = st.text(st.sampled_from("ab  .5\u00e9\u4f60\U0001f600\u2028"), max_size=12)


@given(st.lists(st.tuples(TEXT, st.integers(0, 12), st.integers(0, 12), TEXT), min_size=1, max_size=4))
def test_an_edited_text_has_the_option_in_its_place(edits):
    source = source_of([text for text, *_ in edits])
    places = [sorted((min(a, len(text)), min(b, len(text)))) for text, a, b, _ in edits]
    starts, stops = (
        np.array([len(text[: place[k]].encode()) for (text, *_), place in zip(edits, places, strict=True)], np.int32)
        for k in range(2)
    )
    options = StringTable.from_strings([option for *_, option in edits])
    rows = np.arange(len(edits))
    drawn = DrawnEdits(
        {"starts": starts, "stops": stops, "options_utf8": options.utf8, "options_offsets": options.offsets},
        *([rows] * 3),
    )
    written = drawn.written(edit_writer(source), rows).texts()
    expected = zip(edits, places, strict=True)
    assert written == [text[:start] + option + text[stop:] for (text, *_, option), (start, stop) in expected]


def test_a_saved_index_keeps_its_edits(tmp_path, monkeypatch):
    index = una_fast.build_index(LINES)
    index.save(tmp_path / "index")
    rows, first = np.arange(len(LINES)), NearMisses(index)
    texts = [first.texts(rows, epoch) for epoch in range(3)]
    (folder,) = (tmp_path / "index").glob("near-misses-*")
    monkeypatch.setattr("una_fast.augment.near_misses.SAMPLE", 0)
    monkeypatch.setattr("una_fast.augment.near_misses.word_ends", None)  # nothing is found again
    again = NearMisses(una_fast.load_index(tmp_path / "index"))
    assert [again.texts(rows, epoch) for epoch in range(3)] == texts and again.fits(rows).any()
    with pytest.raises(TypeError):  # with other word lists, the stored edits are of no use
        (tmp_path / "lists.txt").write_text("[opposites]\nsafe, red\n", encoding="utf-8")
        NearMisses(index, word_lists=tmp_path / "lists.txt").texts(rows)
    assert len([*(tmp_path / "index").glob("near-misses-*")]) == 1 and folder.exists()


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "range"])
def test_a_damaged_cache_is_made_again(tmp_path, damage):
    index = una_fast.build_index(LINES)
    index.save(tmp_path / "index")
    rows, near = np.arange(len(LINES)), NearMisses(index)
    texts = near.texts(rows)
    (folder,) = (tmp_path / "index").glob("near-misses-*")
    for file in sorted(folder.glob("*.npy")):
        content = file.read_bytes()
        if damage == "remove":
            file.unlink()
        elif damage == "truncate":
            file.write_bytes(content[:-1])
        else:
            changed = bytes([content[-1] ^ (0x40 if damage == "range" else 1)])
            file.write_bytes(content[:-1] + changed)
        again = NearMisses(una_fast.load_index(tmp_path / "index"))
        assert again.texts(rows) == texts
        with mock.patch.object(again, "_find", None):
            assert again.texts(rows, 1) == near.texts(rows, 1)


def test_an_edit_without_a_list_does_not_fit():
    arrays = arrays_of(["none"])

    def fits(**changed):
        stored = arrays | changed
        return _fit(stored | {"checksum": _checksum(stored)}, source_of(["It is 5."]), 2)

    places = {name: np.zeros(1, np.int32) for name in ("edits_values", "starts", "stops")}
    assert fits() and not fits(**places, edits_indptr=np.array([0, 1, 1]))
