"""`bench.training.trainers` on a tiny model: the table that it writes, and its message for bad input."""

import json

import pytest

from bench import report
from bench.training import trainers
from support.small_runs import write_corpus

pytestmark = pytest.mark.slow


def arguments(folder, model, *more):
    corpus = write_corpus(folder / "corpus.txt", 60)
    return [
        "--corpus", str(corpus), "--model", str(model), "--batch-size", "8", "--rounds", "1",
        "--json", str(folder / "trainers.json"), *more,
    ]  # fmt: skip


def test_every_way_is_measured(tiny_model, tmp_path, capsys):
    assert trainers.main(arguments(tmp_path, tiny_model, "--steps", "2")) == 0
    (table,) = json.loads((tmp_path / "trainers.json").read_text())["tables"]
    assert table["columns"] == trainers.COLUMNS
    ways = {name: cells for name, *cells in table["rows"]}
    assert list(ways) == ["no negatives", trainers.FROZEN, "UNA by text", "UNA by rows", "mine_hard_negatives"]
    for name, (preparation, batch, step, speed, share, added) in ways.items():
        numbers = [float(cell.replace(",", "")) for cell in (batch, step, speed, preparation)]
        assert all(number > 0 for number in numbers[:3]) and numbers[3] >= 0
        assert share.endswith(" %") and added.endswith(" %") == name.startswith("UNA by")
    assert report.single_table(table).count("\n|") >= 6 and "UNA by rows" in capsys.readouterr().out


def test_a_corpus_that_is_too_short_is_a_sentence(tiny_model, tmp_path, capsys):
    assert trainers.main(arguments(tmp_path, tiny_model, "--steps", "200")) == 2
    assert "sentences, and 1616 are needed" in capsys.readouterr().err
