"""`bench.training.trainers` on a tiny model: the table that it writes."""

import json

import pytest

from bench import report
from bench.training import trainers
from support.small_runs import write_corpus

pytestmark = pytest.mark.slow


def test_every_way_is_measured(tiny_model, tmp_path, capsys):
    places = ["--corpus", str(write_corpus(tmp_path / "corpus.txt", 60)), "--json", str(tmp_path / "trainers.json")]
    assert (
        trainers.main([*places, "--model", str(tiny_model), "--batch-size", "8", "--rounds", "1", "--steps", "2"]) == 0
    )
    (table,) = json.loads((tmp_path / "trainers.json").read_text())["tables"]
    assert table["columns"] == trainers.COLUMNS
    ways = {name: cells for name, *cells in table["rows"]}
    assert list(ways) == ["no negatives", trainers.FROZEN, "UNA by text", "UNA by rows", "mine_hard_negatives"]
    for name, (preparation, batch, step, speed, share, added) in ways.items():
        numbers = [float(cell.replace(",", "")) for cell in (batch, step, speed, preparation)]
        assert all(number > 0 for number in numbers[:3]) and numbers[3] >= 0
        assert share.endswith(" %") and added.endswith(" %") == name.startswith("UNA by")
    assert report.single_table(table).count("\n|") >= 6 and "UNA by rows" in capsys.readouterr().out
