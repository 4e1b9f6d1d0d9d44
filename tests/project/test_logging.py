"""The stages of a build are logged by `logging`."""

import logging
from pathlib import Path

import pytest

import una_fast

SENTENCES = ["the cat sat on the mat", "a dog ran far", "the cat ran"]


def test_the_stages_of_a_build_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="una_fast")
    una_fast.build_index(SENTENCES).save(tmp_path / "index")
    assert [record.getMessage() for record in caplog.records] == [
        "corpus read: 3 sentences, 9 distinct words",
        "terms scored and ranked",
        f"index saved: {tmp_path / 'index'}",
    ]
    caplog.clear()
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    una_fast.build_index(tmp_path / "text.txt", folder=tmp_path / "staged")
    stages = [record.getMessage().split(":")[0] for record in caplog.records]
    assert {"stage scan", "stage write"} < set(stages) and all(stage.startswith("stage ") for stage in stages)
