"""The scripts of examples/ run unchanged on a small text and a tiny encoder; so do the cells of the notebook."""

import csv
import json
import runpy
import sys
from pathlib import Path

import datasets
import pytest
from torch.optim.optimizer import register_optimizer_step_post_hook
from transformers import AutoModel

from support.small_runs import ROOT, save_strict_verifier, write_corpus
from una_fast import Augmenter, InputWarning

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "examples"
SCRIPTS, NOTEBOOKS = sorted(EXAMPLES.glob("*.py")), sorted(EXAMPLES.glob("*.ipynb"))
OTHER_FILES = """
    answer_cache cache_guard frozen_negatives gated_loss languages numba_una query_product_pairs
""".split()
LINES = 20


@pytest.fixture
def text(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return write_corpus(tmp_path / "sentences.txt", LINES)


def run(script: Path, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(script), *arguments])
    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("script", [s for s in SCRIPTS if s.stem not in OTHER_FILES], ids=lambda script: script.stem)
def test_a_script_trains(script, text, tiny_model, monkeypatch):
    steps: list[None] = []
    hook = register_optimizer_step_post_hook(lambda *_: steps.append(None))
    run(script, str(tiny_model), text.name, "--max-steps=4", monkeypatch=monkeypatch)
    hook.remove()
    assert_trained(tiny_model)
    assert len(steps) == 4  # without --max-steps it would be six


def test_pairs_train(text, tiny_model, monkeypatch, capsys):
    lines = text.read_text(encoding="utf-8").splitlines()
    with Path("pairs.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("question", "answer", "mined"), *zip(lines, lines[1:], lines[2:], strict=False)])
    words = (str(tiny_model), "pairs.csv", "--columns", "question", "answer", "--mined", "mined", "--near-misses")
    run(EXAMPLES / "query_product_pairs.py", *words, monkeypatch=monkeypatch)
    assert_trained(tiny_model)
    assert capsys.readouterr().out.count("cosine_ndcg@10") == 4


def assert_trained(tiny_model: Path) -> None:
    trained, start = (AutoModel.from_pretrained(folder).state_dict() for folder in ("una-model/final", tiny_model))
    assert any(not trained[name].equal(weights) for name, weights in start.items())


def test_frozen_negatives_writes_a_file(text, monkeypatch):
    run(EXAMPLES / "frozen_negatives.py", text.name, "negatives.jsonl", monkeypatch=monkeypatch)
    rows = [json.loads(line) for line in Path("negatives.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == LINES - 2 and all(row["anchor"] and row["negative_4"] for row in rows)


def test_the_cache_guard_refuses_near_misses(tmp_path, tiny_model, monkeypatch, capsys):
    script = EXAMPLES / "cache_guard.py"
    near_misses = [
        ("How do I turn on dark mode?", "How do I turn off dark mode?"),
        ("The timeout is 30 seconds.", "The timeout is 60 seconds."),
        ("Is it safe to eat?", "Is it not safe to eat?"),
    ]
    same = [("Is it not illegal to fish?", "Is it legal to fish?"), ("What's a dog?", "No number has 2 of them")]
    contradicts = runpy.run_path(str(script))["contradicts"]
    assert all(contradicts(*pair) for pair in near_misses) and not any(contradicts(*pair) for pair in same)
    rows = [f"{a}\t{b}\t{label}" for label, pairs in enumerate([near_misses, same]) for a, b in pairs]
    (tmp_path / "pairs.tsv").write_text("\n".join(["sentence1\tsentence2\tlabel", *rows]), encoding="utf-8")
    words = [str(tmp_path / "pairs.tsv"), "--model", str(tiny_model), "--threshold=-2"]
    with pytest.raises(SystemExit, match="^0$"):
        run(script, *words, monkeypatch=monkeypatch)
    plain, guarded = capsys.readouterr().out.split("encoder and check: ")
    assert "threshold -2.0                           100.0%                100.0%" in plain
    assert guarded.startswith("AUC 100.0%")
    (tmp_path / "pairs.tsv").write_text("first\tsecond\tlabel\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="^2$"):
        run(script, *words, monkeypatch=monkeypatch)
    assert "pairs.tsv: its first line has no column 'sentence1'" in capsys.readouterr().err


def test_the_answer_cache_asks_the_verifier(tmp_path, tiny_model, monkeypatch, capsys):
    save_strict_verifier(tiny_model, tmp_path / "verifier")
    lines = ["sentence1\tsentence2\tlabel", "the old house\tthe old house here\t1", "a cat\ta dog\t0"]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines), encoding="utf-8")
    words = ["--model", str(tiny_model), "--verifier", str(tmp_path / "verifier"), "--threshold=-2"]
    script = EXAMPLES / "answer_cache.py"
    with pytest.raises(SystemExit, match="^0$"):
        run(script, *words, "--pairs", str(tmp_path / "pairs.tsv"), monkeypatch=monkeypatch)
    *_, plain, verified = capsys.readouterr().out.splitlines()
    assert plain.split()[1] == "100.0%" and verified.split()[3:5] == ["0.0%", "0.0%"]
    with pytest.raises(SystemExit, match="^0$"):
        run(script, *words, monkeypatch=monkeypatch)
    assert capsys.readouterr().out.count("not in the cache") == 4


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_runs_and_is_stored_without_outputs(notebook):
    content = json.loads(notebook.read_text(encoding="utf-8"))
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert content["nbformat"] == 4 and not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    names: dict[str, object] = {"__name__": "__main__"}
    with pytest.warns(InputWarning, match="radius=5"):
        for cell in cells:
            exec(compile("".join(cell["source"]), notebook.name, "exec"), names)
    assert len(cells) == 5 and isinstance(names["una"], Augmenter)


def test_scripts_are_linked_and_the_first_is_short():
    names = ("integrations.md", "languages.md", "numba.md", "near-misses.md", "verifier.md")
    pages = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in names]
    assert all(f"(../examples/{file.name})" in "".join(pages) for file in [*SCRIPTS, *NOTEBOOKS])
    assert len((EXAMPLES / "sentence_transformers_text.py").read_text(encoding="utf-8").splitlines()) <= 35
