"""`una-fast compare`: two seeds per condition on a small text, their differences, and a repeated command."""

import itertools
import json
import shutil
from pathlib import Path

import pytest

import una_fast
from support.small_runs import write_corpus, write_dev
from train.compare import CONDITIONS, PROBE, _run_of, answer, main
from train.record.folder import COMPARISON, read_mark
from train.report.runs import Comparison, read_run
from una_fast.errors import InputError, InputWarning


@pytest.fixture(scope="module")
def words(tmp_path_factory, tiny_model):
    """Return the arguments of a command, by flag."""
    folder = tmp_path_factory.mktemp("compare")
    values = {
        "model": tiny_model, "corpus": write_corpus(folder / "corpus.txt"), "dev": write_dev(folder / "dev.tsv"),
        "output": folder / "out", "seeds": "3,1", "max_steps": 2, "batch_size": 8, "device": "cpu",
    }  # fmt: skip
    return {f"--{name.replace('_', '-')}": str(value) for name, value in values.items()}


def call(words, **changes):
    chosen = {**words, **{f"--{name}": str(value) for name, value in changes.items()}}
    return main([word for pair in chosen.items() for word in pair])


@pytest.fixture(scope="module", autouse=True)
def no_data():
    """Make sure that no folder of test data is set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("UNA_FAST_DATA", raising=False)
        yield


@pytest.fixture(scope="module")
def finished(words):
    assert call(words) == 0
    return words


def output_of(words):
    return Path(words["--output"])


def test_every_condition_is_trained_with_every_seed_and_its_settings(finished):
    output = output_of(finished)
    assert read_mark(output)["command"] == COMPARISON
    for name, settings in CONDITIONS.items():
        for seed in (3, 1):
            run = read_run(output / name / f"seed-{seed}")
            assert {option: run.settings[option] for option in settings} == settings
            assert run.summary["status"] == "finished"


def test_differences_are_paired_by_seed(finished):
    content = json.loads((output_of(finished) / "compare.json").read_text())
    for name in ("paper", "defaults", "captions"):
        differences = content["differences"][name]
        for score in ("dev/dev", PROBE):
            each = [content["scores"][name][s][score] - content["scores"]["none"][s][score] for s in ("3", "1")]
            assert differences[score]["difference"] == pytest.approx(sum(each) / 2) and differences[score]["n"] == 2
            assert differences[score]["low"] <= differences[score]["difference"] <= differences[score]["high"]
    assert all("the dev score changes by" in line for line in content["answer"][:3])
    page = (output_of(finished) / "compare.html").read_text()
    assert "plotly" in page and all(line.split("(")[0] in page for line in content["answer"][:3])


def test_a_repeated_command_trains_nothing_and_other_settings_are_refused(finished, tmp_path, monkeypatch, capsys):
    """The folder may have been moved."""
    monkeypatch.setattr("train.launch.run.Trainer", None)  # no run begins
    monkeypatch.chdir(tmp_path)
    shutil.copytree(output_of(finished), "moved")
    assert call(finished, output="moved") == 0
    assert Path("moved", "compare.json").read_bytes() == (output_of(finished) / "compare.json").read_bytes()
    assert call(finished, temperature="0.1") == 2
    assert "--temperature was 0.05 when" in capsys.readouterr().err


def test_the_answer_follows_the_interval():
    for low, high, said in ((0.1, 0.3, "they help"), (-0.3, -0.1, "they harm"), (-0.1, 0.3, "no significant diff")):
        pair = Comparison(3, 0.5, 0.6, (low + high) / 2, 0.1, low, high, 0.5)
        assert said in answer("una", {PROBE: pair, "dev/sts": pair}) and said not in answer("una", {PROBE: pair})
    assert "shows nothing" in answer("una", {"dev/sts": Comparison(1, 0.5, 0.6, 0.1)})
    assert answer("una", {}) == "una: no score can be compared."


@pytest.mark.parametrize(("change", "said"), [
    ({"loss": "simcse"}, "--loss simcse uses no negatives"), ({"keep-words": "missing.txt"}, "missing.txt"),
])  # fmt: skip
def test_all_conditions_are_checked_before_the_first_is_trained(words, tmp_path, capsys, change, said):
    assert call(words, output=tmp_path / "out", **change) == 2
    assert said in capsys.readouterr().err and not [*tmp_path.glob("out/none/*")]


def test_an_encoder_that_cannot_be_probed_lacks_only_that_score(finished, tmp_path, monkeypatch):
    shutil.copytree(output_of(finished), tmp_path / "out")
    probe = una_fast.probe

    def collapsed(encode, index, n):
        if next(numbers) in (0, 1):  # both seeds of the reference
            raise InputError("encode gives all sentences the same vector")
        return probe(encode, index, n)

    numbers = itertools.count()
    monkeypatch.setattr(una_fast, "probe", collapsed)
    with pytest.warns(InputWarning, match="the same vector"):
        assert call(finished, output=tmp_path / "out") == 0
    scores = json.loads((tmp_path / "out" / "compare.json").read_text())["scores"]
    assert PROBE not in scores["none"]["3"] and PROBE in scores["paper"]["3"] and "dev/dev" in scores["none"]["3"]


def test_other_seeds_are_ignored_and_an_untrained_best_is_named(finished, tmp_path):
    output = Path(shutil.copytree(output_of(finished), tmp_path / "out"))
    summary = json.loads((output / "none" / "seed-3" / "run.json").read_text())
    summary["progress"]["best_step"] = 0
    (output / "none" / "seed-3" / "run.json").write_text(json.dumps(summary))
    assert call(finished, output=output, seeds="3") == 0
    content = json.loads((output / "compare.json").read_text())
    assert all(list(content["scores"][name]) == ["3"] for name in CONDITIONS)
    (said,) = (line for line in content["answer"] if line.startswith("No step beat the dev score"))
    assert "in none/seed-3" in said and "No step beat" in (output / "compare.html").read_text()


def test_paraphrases_are_the_positives_in_all_conditions(finished, tmp_path, monkeypatch):
    for name in ("paper", "captions"):
        monkeypatch.delitem(CONDITIONS, name)
    paraphrases = write_corpus(tmp_path / "paraphrases.txt", seed=1)
    words = {name: value for name, value in finished.items() if name != "--dev"}
    assert call(words, output=tmp_path / "out", paraphrases=paraphrases, seeds="3", pooling="max") == 0
    for name in CONDITIONS:
        settings = read_run(tmp_path / "out" / name / "seed-3").settings
        assert (settings["pooling"], settings["paraphrases"]) == ("max", str(paraphrases))
    answers = json.loads((tmp_path / "out" / "compare.json").read_text())["answer"]
    assert answers[-1].startswith("This does not show whether the encoder is better")


def test_retrieval_sets_in_the_data_are_scored(tmp_path):
    options = main.read(["--model=m", "--corpus=text.txt", f"--data={tmp_path}", "--output=out"])
    assert _run_of(options, tmp_path / "none", {}).tasks == "sts,near-miss"
    (tmp_path / "retrieval" / "faq").mkdir(parents=True)
    (tmp_path / "retrieval" / "faq" / "corpus.jsonl").touch()
    assert _run_of(options, tmp_path / "none", {}).tasks == "sts,near-miss,retrieval"
