"""docs/cluster.md has the tables of the cost model, and the model fits the committed figures."""

import json
from pathlib import Path

import pytest

from bench.scale import costs

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"


def test_the_page_shows_the_tables_of_the_model():
    assert costs.tables() in PAGE.read_text(encoding="utf-8")


def test_the_model_foretells_the_disk_of_twenty_million_sentences():
    """Estimates are at least the measured figures, and at most twice: words repeat more in a larger corpus."""
    measured = json.loads(costs.RESULTS.read_text())["twenty_million"]["threads"]["stages"]
    for stage in ("scan", "merge", "rank"):
        told = costs.costs(20_000_000, 1)[stage].disk / 2**20
        assert measured[stage]["disk_mib"] <= told <= 2 * measured[stage]["disk_mib"], stage


@pytest.mark.parametrize("machines", [8, 64])
def test_more_machines_never_take_longer(machines):
    for n_documents in costs.SIZES:
        one, many = (sum(c.seconds for c in costs.costs(n_documents, m).values()) for m in (machines, 2 * machines))
        assert many <= one
