"""An index built by a Dask cluster has the same bits; a cluster that cannot build it gets a message."""

from __future__ import annotations

import pytest

import una_fast
from index.test_staged import LINES, built, same
from support.staged import cut
from una_fast.errors import InputError
from una_fast.index import executors
from una_fast_cli.__main__ import main
from una_fast_cli.index import connected

pytestmark = pytest.mark.slow

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    """Two workers in this process: no processes have to start, but the workers act as on machines of their own."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, protocol="tcp"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(LINES))
    return path


def test_the_command_builds_on_a_cluster_what_a_build_in_memory_makes(cluster, corpus, tmp_path, monkeypatch):
    cut(monkeypatch, split_bytes=300)
    arguments = ["index", str(corpus), "--output", str(tmp_path / "index"), "--cluster", cluster.scheduler_address]
    assert main([*arguments, "--memory", "1GB"]) == 0
    assert same(una_fast.load_index(tmp_path / "index"), una_fast.build_index(corpus))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nothing://here"])
def test_an_unreachable_scheduler_is_said_with_a_sentence(address, monkeypatch):
    monkeypatch.setattr("una_fast_cli.index.TIMEOUT", 0.2)
    with pytest.raises(InputError, match="no Dask scheduler answers at .* start one with `dask scheduler`"):
        with connected(address):
            pass


def test_workers_that_cannot_take_part_are_named(client, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "worker_answer", lambda folder: ("0.0.1", False))
    with pytest.raises(
        InputError, match=r"worker tcp://.* answers .* must have una_fast .*, on a disk that all machines"
    ):
        built(corpus, folder=tmp_path / "index", executor=client)


def test_a_cluster_without_workers_is_said_with_a_sentence(corpus, tmp_path):
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        distributed.Client(empty) as client,
        pytest.raises(InputError, match="the cluster has no worker"),
    ):
        built(corpus, folder=tmp_path / "index", executor=client)
