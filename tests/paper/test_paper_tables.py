"""`python -m bench.paper`: tables at small scale, reuse of finished runs, and bad input."""

import csv
import json
import shlex

import pytest

from bench.paper import works
from bench.paper.__main__ import main
from bench.paper.request import read_request
from bench.paper.tables import DEV, RUN, contents
from support import small_runs
from train.ddp import command as train_command

SMALL = "--max-steps 2 --batch-size 8 --max-length 16 --device cpu --tasks STSBenchmark".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a corpus, other texts as its "paraphrases", and STS-B as in SentEval's data."""
    folder = tmp_path_factory.mktemp("paper")
    small_runs.write_corpus(folder / "corpus.txt")
    small_runs.write_senteval(folder)
    stsb = folder / "senteval/downstream/STS/STSBenchmark"
    (stsb / "sts-dev.csv").write_text((stsb / "sts-test.csv").read_text())
    lines = (folder / "corpus.txt").read_text().splitlines(keepends=True)
    (folder / "other.txt").write_text("".join(reversed(lines)))
    return folder


@pytest.fixture
def paper(folder, tiny_model, monkeypatch):
    """A function that runs the command with small settings and returns the exit code and table.json."""

    def run(name, *more, output=folder / "output"):
        own = ["--model", tiny_model, "--corpus", folder / "corpus.txt", "--data", folder, "--output", output]
        code = main([name, *map(str, own), *SMALL, *map(str, more)])
        table = output / "table.json"
        return code, json.loads(table.read_text()) if table.exists() else {}

    return run


@pytest.mark.slow
def test_every_row_is_a_run_that_train_ddp_accepts(folder, tiny_model):
    texts = folder / "other.txt"
    words = ["--corpus", folder / "corpus.txt", "--data", folder, "--output", "o", "--synonyms", "s.tsv"]
    words += ["--paraphrases", texts, "--back-translations", texts]
    for name in contents():
        request = read_request([name, *map(str, words)], "")
        sources = {repr((cell.source, cell.score == DEV)): cell for cell in request.cells() if cell.source.kind == RUN}
        for cell in sources.values():
            run = request.run_of(cell.source, (42,), cell.score != DEV)
            assert run.loss == "pairs" or run.loss.startswith("bench.paper.noise:")
            assert (run.surface, run.precision, run.keep_punctuation) == ("paper", "fp32", False)
            assert (run.batch_size, run.temperature, run.dropout, run.epochs) == (64, 0.05, 0.1, 1)
            assert run.model == cell.source.name and bool(run.paraphrases) == bool(cell.source.texts)


@pytest.mark.slow
def test_tables_in_one_folder_share_runs(paper, folder, tiny_model, capsys, monkeypatch):
    forms = [f"--{form}={folder / form}" for form in ("csv", "latex", "svg")]
    code, table = paper("alpha", "--rows", "5,0", "--columns", "UNA", "--seeds", "42,1", *forms)
    assert code == 0
    assert [row["name"] for row in table["rows"]] == ["5", "0"]
    assert table["models"] == [str(tiny_model)] and table["variant"] == "paper"
    assert_forms(folder)
    five = table["rows"][0]
    assert five["paper"] == {"UNA": 0.8235}
    seeds = five["seeds"]["UNA"]
    assert five["measured"]["UNA"] == pytest.approx((seeds["42"] + seeds["1"]) / 2)
    assert five["difference"]["UNA"] == pytest.approx(five["measured"]["UNA"] - 0.8235)
    assert five["deviation"]["UNA"] == pytest.approx(abs(seeds["42"] - seeds["1"]) / 2**0.5)
    assert f"{100 * five['measured']['UNA']:.2f}" in (folder / "output" / "table.md").read_text()
    assert {path.name for path in (folder / "output" / "runs").iterdir()} == {"tiny_model0", "tiny_model0_augment-none"}

    for said in (
        " ".join(table["notes"]),
        " ".join(capsys.readouterr().out.split()),
    ):  # the encoder is not the paper's BERT
        assert "Measured with --model=" in said and "--max-steps=2 --batch-size=8, which the paper's figures" in said
    assert paper("alpha", "--rows", "5", "--columns", "UNA", "--temperature", "0.1")[0] == 2
    assert "--temperature was 0.05" in capsys.readouterr().err

    monkeypatch.setattr(works, "train_seeds", lambda run: pytest.fail("trained again"))
    again = ["beta", "--rows", "0.5", "--columns", "UNA", "--seeds", "42,1"]
    assert paper(*again)[1]["rows"][0]["measured"] == five["measured"]
    assert json.loads((folder / "output/tables/alpha.json").read_text())["rows"][0] == five
    capsys.readouterr()
    assert paper(*again, "--dry-run")[0] == 0
    said = capsys.readouterr().out
    assert "done   python -m train.ddp" in said and "0 of 1 runs are to do" in said


def assert_forms(folder):
    """Check the CSV with a line per cell, the LaTeX with a line per row, and the figure."""
    five, zero = csv.DictReader((folder / "csv").open())
    for text in (five["notes"], (folder / "latex").read_text().replace(r"\_", "_")):
        assert "--max-steps=2 --batch-size=8, which the paper's figures are not." in text
        assert "No step beat the dev score before training" in text or "best/" not in text
    assert (five["row"], five["column"], five["paper"], five["seeds"]) == ("5", "UNA", "0.8235", "42 1")
    score = 100 * float(five["measured"])
    latex = (folder / "latex").read_text().splitlines()
    assert latex[0] == r"\begin{tabular}{lr}" and latex[2] == r"alpha & UNA \\"
    assert latex[4].startswith(rf"5 & {score:.2f} $\pm$ ") and latex[4].endswith(r") \\") and zero["row"] == "0"
    svg = (folder / "svg").read_text()
    assert all(f">{text}</text>" in svg for text in ("UNA, measured", "UNA, paper", "alpha"))


@pytest.mark.slow
def test_checkpoints_and_rows_with_texts_or_synonyms_are_measured(paper, folder, tmp_path):
    """A published encoder is scored, texts and synonyms are used, and the average needs all seven tasks."""
    synonyms = tmp_path / "synonyms.tsv"
    synonyms.write_text("river\tstream\ncastle\tfort\n")
    texts = ["--paraphrases", folder / "other.txt", "--back-translations", folder / "other.txt", "--synonyms", synonyms]
    tables = {"augmentations": "EDA synonym replacement,back-translation", "comparison": "BERT whitening,Ours-BERT"}
    for name, rows in tables.items():
        code, table = paper(name, "--rows", rows, *texts, output=tmp_path / "output")
        assert code == 0 and table["table"] == name
        for row in table["rows"]:
            assert -1 <= row["measured"]["STSBenchmark"] <= 1 and row["measured"]["average"] is None, row
    assert len([*tmp_path.glob("output/runs/*/seed-*")]) == 3
    assert len([*tmp_path.glob("output/checkpoints/*_whitening.json")]) == 1


def test_sizes_and_samples_need_no_model(folder, tmp_path, capsys):
    own = ["--corpus", folder / "corpus.txt", "--data", folder, "--output", tmp_path / "o"]
    sizes = ["sizes", *own[2:], "--rows", "STSBenchmark"]  # without a corpus
    assert main([*map(str, [*sizes, "--dry-run"])]) == 0
    assert capsys.readouterr().out == "with the table  count the pairs of STSBenchmark\n0 of 0 runs are to do\n"
    assert main([*map(str, sizes)]) == 0
    assert "| STSBenchmark | 24 (1,379) |" in capsys.readouterr().out
    assert main([*map(str, ["samples", *own, "--radius", "1%", "--seeds", "3,4"])]) == 0
    (first, *_) = json.loads((tmp_path / "o" / "table.json").read_text())["rows"]
    assert first["paper"] == {"negative": "another instrumental was x-45c."}
    drawn = first["seeds"]["negative"]
    assert [*drawn] == ["3", "4"] and first["measured"]["negative"] == drawn["3"] != first["name"].lower()


def test_rows_without_texts_are_left_out_and_the_others_run(paper, tmp_path, capsys):
    assert paper("main", "--rows", "BERT,BERT + paraphrasing", "--dry-run", output=tmp_path / "new")[0] == 0
    said = capsys.readouterr().out
    assert "1 of 1 runs are to do\n--paraphrases is missing, so these are left out: BERT + paraphrasing. Write" in said
    assert paper("alpha", "--rows", "5", "--dry-run", output=tmp_path / "new")[0] == 0
    assert "left out: Paraphrasing & UNA. Write the file with `python -m train.generate" in capsys.readouterr().out


def test_help_lists_the_rows_and_columns(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "ablation, rows: steps 2 and 3 random, step 3 random, UNA\n" in capsys.readouterr().out


def test_a_dry_run_lists_the_commands_and_runs_none(paper, folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(works, "train_seeds", lambda run: pytest.fail("trained"))
    more = ["--paraphrases", folder / "other.txt", "--dry-run"]
    code, table = paper("comparison", "--rows", "BERT whitening,Ours-BERT", *more, output=tmp_path / "new")
    said = capsys.readouterr().out.splitlines()
    assert code == 0 and not table and not (tmp_path / "new").exists()
    for line, command in zip(said, ("evaluate --model", "ddp --corpus"), strict=False):
        assert line.startswith(f"to do  python -m train.{command}")
    assert f"--paraphrases={folder / 'other.txt'}" in said[1] and "--whiten" in said[0]
    assert said[2:] == ["2 of 2 runs are to do"]
    words = shlex.split(said[1].removeprefix("to do  "))[3:]  # a valid command line of train.ddp
    assert train_command.read(words).paraphrases


@pytest.mark.slow
def test_the_same_command_continues_after_a_stop(paper, tmp_path, monkeypatch, capsys):
    rows = ["--rows", "5,1", "--columns", "UNA"]
    real = works.train_seeds
    monkeypatch.setattr(works, "train_seeds", lambda run: 143 if "alpha" in run.output else real(run))
    output = tmp_path / "stopped"
    assert paper("alpha", *rows, output=output)[0] == 143
    assert "run the same command to continue: 1 of 2 are left" in capsys.readouterr().err
    half = json.loads((output / "table.json").read_text())
    assert [row["measured"]["UNA"] is None for row in half["rows"]] == [False, True]
    monkeypatch.setattr(works, "train_seeds", real)
    code, table = paper("alpha", *rows, output=output)
    assert code == 0 and all(row["measured"]["UNA"] is not None for row in table["rows"])


OWN = "--corpus {folder}/corpus.txt --data {folder} --output {new}"
TRAINED = f"{OWN} --model {{model}} {' '.join(SMALL)}"
REFUSED = [
    ("main --output o --svg f.svg", "--svg: the table main has no curve: choose from alpha, beta, radius"),
    ("abaltion", "TABLE is 'abaltion': choose from main, ablation"),
    ("--output o", "TABLE is missing: choose from main, ablation"),
    ("main --near-misses", "unknown option --near-misses"),
    ("main --seed 1", "unknown option --seed: did you mean --seeds?"),
    ("main", "--output is missing"),
    ("main --data {folder} --output {new}", "contains no wiki1m_for_simcse.txt: give --corpus FILE, or fetch"),
    (f"ablation {OWN}", "hf download bert-base-uncased"),
    (f"alpha {OWN} --rows 2", "--rows: the table has no '2': choose from 9, 7, 5"),
    (f"main {TRAINED} --rows 'BERT + paraphrasing'", "python -m train.generate paraphrase --model pegasus --corpus"),
    (f"main {TRAINED} --rows 'BERT + paraphrasing' --paraphrases {{new}}", "new: no such file"),
    (f"augmentations {TRAINED} --rows 'SimCSE,EDA synonym replacement' --synonyms {{new}}.tsv", "new.tsv"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_bad_input_gives_one_clear_message_before_a_run(folder, tiny_model, tmp_path, capsys, words, message):
    words = shlex.split(words.format(folder=folder, model=tiny_model, new=tmp_path / "new"))
    assert main(words) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line and not (tmp_path / "new").exists()
