"""Reading scored pairs, pooling, and correlations: against scipy, plain references and known values."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from train.encoder.pooling import POOLINGS
from train.evaluation.model import DevScorer, batches_by_length, load_model
from train.evaluation.similarity import cosine, pearson, spearman, whiten
from train.evaluation.tasks import sts
from train.evaluation.tasks.registry import EvaluationProtocol, downstream_folder
from train.evaluation.tasks.sts import StsTask, load_dev
from una_fast.errors import InputError

# fixed values: raw [CLS] of the packaged MiniLM on STS-B dev. SimCSE's SentEval gives the same digits, by
# `python -m bench.parity.compare_senteval --mode dev --tasks STSBenchmark`
MINILM_STSB_DEV = 0.7973146


def write_pairs(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_three_columns_and_stsb_columns_give_the_same_task(tmp_path):
    plain = load_dev(write_pairs(tmp_path / "plain.tsv", ["1.5\ta  b\tc", "4\td\te f "]))
    stsb = load_dev(write_pairs(tmp_path / "stsb.csv", ["g\tf\ty\t1\t1.5\ta b\tc", "g\tf\ty\t2\t4\td\te f"]))
    assert plain.texts == stsb.texts == [["a b", "d"], ["c", "e f"]]
    assert plain.gold.tolist() == stsb.gold.tolist() == [1.5, 4.0]


@pytest.mark.parametrize(("content", "named"), [
    (b"1\ta\tb\nhigh\tc\td\n", ", line 2: .*'high'"), (b"1\ta\tb\nnan\tc\td\n", ", line 2: .*'nan'"),
    (b"1\ta\tb\n2\tc\n", ", line 2: 2 "), (b"3\ta\tb\n3\tc\td\n", "2 scores are 3"),
    (b"1\tcaf\xe9\tb\n", ""), (b"", ""), (None, ""),
])  # fmt: skip
def test_errors_about_pairs_name_file_and_line(tmp_path, content, named):
    path = tmp_path / "dev.tsv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=f"{path}.*{named}"):
        load_dev(path)


def write_year(downstream: Path, subset: str, pairs: list[str], golds: list[str]) -> None:
    folder = downstream / "STS" / "STS13-en-test"
    folder.mkdir(parents=True, exist_ok=True)
    write_pairs(folder / f"STS.input.{subset}.txt", pairs)
    write_pairs(folder / f"STS.gs.{subset}.txt", golds)


def test_a_year_of_sts_joins_its_subsets_and_skips_unscored_pairs(tmp_path):
    write_year(tmp_path, "FNWN", ["a\tb", "c\td"], ["1", "2"])
    write_year(tmp_path, "headlines", ["e\tf", "g\th"], ["", "5"])
    write_year(tmp_path, "OnWN", ["i\tj"], ["0"])
    task = sts.read(tmp_path, "STS13")
    assert task.gold.tolist() == [1, 2, 5, 0]
    assert task.texts == [["a", "c", "g", "i"], ["b", "d", "h", "j"]]
    write_year(tmp_path, "FNWN", ["a\tb", "c\td"], ["1"])
    with pytest.raises(InputError, match=r"STS\.input\.FNWN\.txt .* 2 .*STS\.gs\.FNWN\.txt .* 1 "):
        sts.read(tmp_path, "STS13")
    with pytest.raises(InputError, match="STS12"):
        sts.read(tmp_path, "STS12", "dev")


def test_data_may_name_any_of_three_nested_folders(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="senteval/downstream"):
        downstream_folder(tmp_path)
    downstream = tmp_path / "senteval" / "downstream"
    downstream.mkdir(parents=True)
    for named in (tmp_path, tmp_path / "senteval", downstream):
        assert downstream_folder(named) == downstream
    monkeypatch.setenv("UNA_FAST_DATA", str(tmp_path))
    assert downstream_folder() == downstream
    monkeypatch.delenv("UNA_FAST_DATA")
    with pytest.raises(InputError, match="--data"):
        downstream_folder()


values = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.5, 2.5000001, -3.0, 1e6]), min_size=2, max_size=30)


@given(st.data())
def test_correlations_equal_those_of_scipy(data):
    x = np.array(data.draw(values))
    y = np.array(data.draw(st.lists(st.floats(-5, 5, width=16), min_size=len(x), max_size=len(x))))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan(spearman(x, y)) and np.isnan(pearson(x, y))
        return
    assert spearman(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-9)
    assert pearson(x, y) == pytest.approx(pearsonr(x, y).statistic, abs=1e-6)


def test_correlations_are_over_all_pairs():
    gold, similarity = np.array([0.0, 1, 2, 0, 1, 2, 3, 5, 5]), np.array([0.1, 0.2, 0.3, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    embeddings = np.stack([similarity, np.sqrt(1 - similarity**2)], axis=1)  # their cosines with (1, 0)
    task = StsTask("t", [["a"] * 9, ["b"] * 9], {"test": 9}, gold)
    scores = task.score([np.tile([1.0, 0], (9, 1)), embeddings], EvaluationProtocol())
    assert scores["spearman"]["all"] == pytest.approx(spearmanr(similarity, gold).statistic)
    assert scores["pearson"]["all"] == pytest.approx(pearsonr(similarity, gold).statistic)


def test_whitened_embeddings_have_mean_0_and_identity_covariance():
    x = np.random.default_rng(0).normal(size=(200, 5)) @ np.diag([1, 2, 3, 4, 0]) + 7
    whitened = whiten(x, np.arange(200))
    assert whitened.mean(axis=0) == pytest.approx(np.zeros(5), abs=1e-9)
    covariance = np.cov(whitened, rowvar=False, bias=True)
    assert np.sort(np.linalg.eigvalsh(covariance)) == pytest.approx([0, 1, 1, 1, 1], abs=1e-9)


@given(st.lists(st.integers(2, 40), min_size=1, max_size=60), st.integers(16, 200))
def test_batches_cover_all_rows_within_the_budget(lengths, budget):
    batches = batches_by_length(lengths, budget)
    rows = [int(row) for batch in batches for row in batch]
    assert rows == sorted(range(len(lengths)), key=lengths.__getitem__)
    assert all(lengths[batch[-1]] * len(batch) <= budget or len(batch) == 1 for batch in batches)


def plain_pool(hidden: list[torch.Tensor], mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """Each pooling as a loop over sentences and their tokens."""
    last = hidden[-1]
    layers = {"avg_first_last": (hidden[1] + last) / 2, "avg_top2": (hidden[-2] + last) / 2}.get(pooling, last)
    of_tokens = {
        "cls_before_pooler": lambda tokens: tokens[0],
        "last": lambda tokens: tokens[-1],
        "max": lambda tokens: torch.stack([column.max() for column in tokens.T]),
        "weighted_mean": lambda tokens: (
            sum((i + 1) * token for i, token in enumerate(tokens)) / sum(range(1, len(tokens) + 1))
        ),
    }.get(pooling, lambda tokens: tokens.mean(0))
    return torch.stack([of_tokens(layers[i][mask[i].bool()]) for i in range(len(mask))])


@pytest.mark.parametrize("padded", ["right", "left"])
@pytest.mark.parametrize("pooling", [name for name in POOLINGS if name != "cls"])
def test_poolings_equal_loops_over_tokens(pooling, padded):
    torch.manual_seed(0)
    hidden = [torch.randn(3, 5, 4) for _ in range(4)]
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]])
    mask = mask if padded == "right" else mask.flip(1)
    output = SimpleNamespace(last_hidden_state=hidden[-1], hidden_states=tuple(hidden))
    assert POOLINGS[pooling].needs_hidden_states == (pooling in ("avg_first_last", "avg_top2"))
    torch.testing.assert_close(POOLINGS[pooling].pool(output, mask), plain_pool(hidden, mask, pooling))


@pytest.mark.parametrize("threads", [1, 2])
def test_pair_scorer_encodes_each_sentence_once_and_scores_as_one_at_a_time(tiny_model, monkeypatch, threads):
    monkeypatch.setattr("train.evaluation.model.CPU_BATCH_TOKENS", 16)
    model = load_model(str(tiny_model), device="cpu")
    assert model.embed([]).shape == (0, 32)
    first = ["a man plays", "two dogs run in a wide green field", "rain", "one more sentence here"]
    second = ["a man is playing", "rain", "it rains on the old town", "one more sentence there"]
    task = StsTask("pairs", [first, second], {"test": 4}, np.array([4.0, 2.5, 3.0, 4.5]))
    seen = []

    def encode(batch):
        assert torch.is_inference_mode_enabled()
        seen.extend(batch["input_ids"].tolist())
        return model.encode(batch)

    def embed(text):
        with torch.inference_mode():
            return model.encode(dict(model.tokenizer([text], return_tensors="pt")))[0].numpy()

    pairs = [(embed(a), embed(b)) for a, b in zip(first, second, strict=True)]
    cosines = [float(u @ v / np.linalg.norm(u) / np.linalg.norm(v)) for u, v in pairs]
    scorer = DevScorer(task, model.tokenizer)
    assert scorer(encode, threads) == pytest.approx(spearmanr(cosines, task.gold).statistic, abs=1e-9)
    assert len(seen) == len({*first, *second}) == 7
    assert np.isnan(scorer(lambda batch: torch.ones(len(batch["input_ids"]), 3)))


def test_cosines_of_float32_are_summed_in_float64():
    first, second = np.random.default_rng(0).normal(size=(2, 5, 1000)).astype(np.float32)
    plain = [
        math.fsum(float(a) * float(b) for a, b in zip(u, v, strict=True)) / math.sqrt(
            math.fsum(float(a) ** 2 for a in u) * math.fsum(float(b) ** 2 for b in v)
        )
        for u, v in zip(first, second, strict=True)
    ]  # fmt: skip
    np.testing.assert_allclose(cosine(first, second), plain, rtol=0, atol=1e-14)
    broken = np.array([[0.0, 0], [np.nan, 0], [3, 4]], np.float32)
    assert cosine(broken, np.array([[1.0, 0], [1, 0], [4, -3]], np.float32)).tolist() == [0, 0, 0]


@pytest.mark.slow
def test_minilm_on_stsb_dev_equals_sentevals_figure(data_dir, minilm):
    model = load_model(str(minilm), "cls_before_pooler", device="cpu")
    dev = load_dev(downstream_folder(data_dir) / "STS" / "STSBenchmark" / "sts-dev.csv")
    score = DevScorer(dev, model.tokenizer)(model.encode, threads=None)
    assert score == pytest.approx(MINILM_STSB_DEV, abs=1e-4)
