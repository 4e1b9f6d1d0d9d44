"""The near-misses that were read by hand: the verdicts, their shares, and that they are drawn again."""

from collections import Counter
from pathlib import Path

import pytest

from bench.evidence.edit_readings import SOURCES, N, digest, draw, read_verdicts, table

READINGS = read_verdicts()
GROUPS = Counter((one.edit, one.source) for one in READINGS)


def test_few_near_misses_mean_the_same_or_are_not_english():
    assert set(GROUPS) == {(edit, source) for edit in ("polarity", "number") for source in SOURCES}
    assert set(GROUPS.values()) == {N}
    for group in GROUPS:
        for reading in ("first", "second"):
            found = Counter(getattr(one, reading) for one in READINGS if (one.edit, one.source) == group)
            assert set(found) <= {"fine", "same", "bad"}
            assert max(found["same"], found["bad"]) <= 0.05 * N, (group, reading, found)


def test_the_page_has_the_shares_of_the_verdicts():
    page = (Path(__file__).parents[2] / "docs" / "augmentations.md").read_text(encoding="utf-8")
    for line in table(READINGS)[1:]:
        edit, source, *rule, _, same, bad = line.split()
        if rule == ["all"]:
            name = {"questions": "questions", "wikipedia": "Wikipedia"}[source]
            assert f"| `{edit}` | {name} | {same} | {bad} |" in page


@pytest.mark.parametrize("edit", ["polarity", "number"])
def test_the_same_near_misses_are_drawn_again(edit, data_dir):
    file = data_dir / SOURCES["questions"]
    if not file.exists():
        pytest.skip(f"needs {file}")
    lines = file.read_text(encoding="utf-8").splitlines()
    expected = {one.row: one.digest for one in READINGS if (one.edit, one.source) == (edit, "questions")}
    assert {row: digest(old, new) for row, _, old, new in draw(edit, lines)} == expected
