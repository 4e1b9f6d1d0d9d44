"""bench.evidence.near_sets and near_scores: the sets of labelled near-misses, made from stand-ins, and their scores."""

import copy
import hashlib
import io
import json
import os
import pickle
import tarfile
from collections import Counter, OrderedDict
from pathlib import Path

import numpy as np
import pytest

from bench.evidence import near_scores, near_sets, results
from una_fast.errors import InputError
from una_fast.pair_scores import PairScores, read_pairs

QQP, SUITE = "similiar_qqp_full.json.gz", "qqp_suite.tar.gz"


class Test:
    """Stands for a class of CheckList, which is not installed."""

    __test__ = False

    def __init__(self, number: int, labels: int, folder: Path) -> None:
        self.labels, self.hook = labels, Hostile(folder / "ran")
        of_test = [(f"Is {name} {number}?", f"Was {name} {number}?") for name in ("Ann", "Bob", "Cem", "Dan", "Eve")]
        self.data = [*of_test, ("only one text",)]


class Hostile:
    """Makes a folder when a pickle of it is loaded the usual way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


class Suite:
    """Stands for CheckList's suite."""

    def __init__(self, folder: Path) -> None:
        self.tests = OrderedDict((f"test {n}", Test(n, n % 2, folder)) for n in range(50))


def packed(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        about = tarfile.TarInfo("some/file")
        about.size = len(content)
        tar.addfile(about, io.BytesIO(content))
    return buffer.getvalue()


def stand_ins(folder: Path) -> dict[str, bytes]:
    """Return small files in the formats of the public ones, by name."""
    pairs = [
        ("How do I turn  on\tmode %d?", "How do I turn off mode %d?", 0),
        ("Is it %d metres?", "Is it %d1 metres?", 0),
    ]
    pairs += [("Where do people live in Rome %d?", "Where do people live in Oslo %d?", 0)]
    pairs += [("How can one learn to sing %d?", "Which way is best to become a singer %d?", 1)]
    pairs += [(f"Is {colour} paint good %d?", "Is blue paint good %d?", n) for n, colour in enumerate(("red", "azure"))]
    pairs += [("What is lava %d?", "Who rules the sea %d?", 0)]
    rows = [
        {"text_a": first.replace("%d", str(n)), "text_b": second.replace("%d", str(n)), "label": label}
        for n in range(10, 40)
        for first, second, label in pairs
    ]
    rows += [{"text_a": "Same?", "text_b": "same?", "label": 1}]
    rows += [{"text_a": rows[0]["text_b"].upper(), "text_b": rows[0]["text_a"], "label": 1}]  # a repeated pair
    paws = [f"{n}\tThe cat {n} saw the dog .\tThe dog saw the cat {n} .\t{n % 2}" for n in range(30)]
    quoted = [f'{n}\tb\'Is "{n}" so ?\'\tb"Isn\'t {n} so ?"\t{n % 2}' for n in range(6)]
    return {
        QQP: packed(json.dumps(rows).encode()),
        SUITE: packed(pickle.dumps(Suite(folder))),
        "dev-en.tsv": "\n".join(["id\tsentence1\tsentence2\tlabel", *paws]).encode(),
        "dev_and_test.tsv": "\n".join(["id\tsentence1\tsentence2\tlabel", *quoted]).encode(),
        "mqp.csv": b'1,"Can I, with flu, run?",May I jog with flu?,1\n1,"Can I, with flu, run?",Does flu hurt?,0\n',
    }


@pytest.fixture
def public(tmp_path, monkeypatch) -> Path:
    """Return a folder that stands in for the public repositories, with a table of its files and of what they give."""
    folder, files = tmp_path / "public", stand_ins(tmp_path)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    made = {name: text.encode() for name, text in near_sets.make(files).items()}
    rows = [(name, hashlib.sha256(content).hexdigest(), (folder / name).as_uri()) for name, content in files.items()]
    rows += [(name, hashlib.sha256(content).hexdigest(), "") for name, content in made.items()]
    (tmp_path / "table.tsv").write_text(
        "".join("\t".join(row) + "\n" for row in [("file", "sha256", "address"), *rows])
    )
    monkeypatch.setattr(near_sets, "TABLE", tmp_path / "table.tsv")
    return folder


def test_the_sets_are_made_from_downloaded_files(public, tmp_path, monkeypatch, capsys):
    data = tmp_path / "data"
    monkeypatch.setattr("sys.argv", ["near_sets", "--to", str(data)])
    assert near_sets.main() == 0
    pairs = data / near_sets.PAIRS
    assert {path.name for path in pairs.iterdir()} == {Path(line).name for line in capsys.readouterr().out.splitlines()}
    sets = {path.stem: read_pairs(path) for path in pairs.glob("*.tsv")}
    assert not (tmp_path / "ran").exists()  # the pickle's code did not run
    dev = {text.lower() for name, part in sets.items() if name.endswith("_dev") for pair in part for text in pair[:2]}
    test = {text.lower() for name, part in sets.items() if name.endswith("_test") for pair in part for text in pair[:2]}
    assert dev and test and not dev & test
    near = Counter(group for *_, group in sets["qqp_near_dev"] + sets["qqp_near_test"])
    assert {*near} == {"polarity", "number", "name", "word", "paraphrase"} and near["polarity"] <= 30
    assert {label for _, _, label, group in sets["qqp_near_test"] if group == "paraphrase"} == {1}
    for name in ("qqp_close_dev", "qqp_close_test", "qqp_all_test"):
        assert {label for *_, label, _ in sets[name]} == {0, 1}
    assert "far" in {group for *_, group in sets["qqp_all_test"]}
    swapped = [pair for pair in sets["checklist_test"] if pair[3] == "swap"]
    assert swapped and not any(label for _, _, label, _ in swapped)
    assert {label for *_, label, group in sets["checklist_test"] if group == "filler"} == {0, 1}  # of tests 3 and 4
    assert sets["medical_test"][0] == ("Can I, with flu, run?", "May I jog with flu?", 1, "medical")
    assert ('Is "0" so ?', "Isn't 0 so ?", 0, "paws") in sets["paws_qqp_test"]
    questions = (pairs / near_sets.QUESTIONS).read_text().splitlines()
    labelled = {text for name, part in sets.items() if name.startswith("qqp") for pair in part for text in pair[:2]}
    assert not {*questions} & labelled

    for path in public.iterdir():
        path.unlink()
    near_sets.write_sets(data)  # nothing is downloaded twice
    near_sets.write_sets(tmp_path / "other", data / near_sets.SOURCES)
    assert (tmp_path / "other" / near_sets.PAIRS / "qqp_near_dev.tsv").is_file()


def test_a_file_with_another_checksum_is_refused(public, tmp_path, monkeypatch, capsys):
    (public / "mqp.csv").write_bytes(b"1,Another?,Text?,1\n")
    monkeypatch.setattr("sys.argv", ["near_sets", "--to", str(tmp_path / "data")])
    assert near_sets.main() == 2
    said = capsys.readouterr().err
    assert "mqp.csv" in said and "sha256" in said
    assert not (tmp_path / "data" / near_sets.SOURCES / "mqp.csv").exists()
    assert not (tmp_path / "data" / near_sets.PAIRS).exists()
    with pytest.raises(InputError, match=r"mqp\.csv: its sha256 is .*, not .*: delete it, and repeat the command"):
        near_sets.write_sets(tmp_path / "data", public)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Is it ok to eat eggs?", "Is it ok to eat eggs daily?", "added"),
        ("Is it ok to eat eggs?", "Is it ok to eat ham?", "word"),
        ("Did they go to Rome today?", "Did they go to Oslo today?", "name"),
        ("Rome is a nice city", "Oslo is a nice city", "word"),  # a capital may be the start of the sentence
        ("Is it ok to eat eggs?", "Is it not ok to eat eggs?", "polarity"),
        ("Why is tea good for me?", "Why is tea bad for me?", "polarity"),
        ("Is 1,000 more than enough?", "Is 2.5 more than enough?", "number"),
        ("Do dogs chase old cats?", "Do cats chase old dogs?", "order"),
        ("How old is the red house that we saw?", "How large is a red house that we saw?", "words"),
        ("Do dogs chase old cats?", "do dogs chase old cats", ""),
        ("Is it 5?", "Is it 6?", ""),  # three words
        ("How old is the red house?", "Who sold that big red house?", ""),
    ],
)  # fmt: skip
def test_how_two_questions_differ(first, second, expected):
    assert near_sets.difference(first, second) == near_sets.difference(second, first) == expected


def test_the_shared_sets_have_the_checksums_of_the_table(data_dir):
    listed = [near_sets.Listed(*line.split("\t")) for line in near_sets.TABLE.read_text().splitlines()[1:]]
    there = [one for one in listed if not one.address and (data_dir / near_sets.PAIRS / one.file).is_file()]
    if not there:
        pytest.skip(f"needs {near_sets.PAIRS}/ in UNA_FAST_DATA: python -m bench.evidence.near_sets")
    for one in there:
        one.checked(data_dir / near_sets.PAIRS / one.file)


@pytest.mark.slow
def test_the_sets_are_made_again_byte_for_byte(data_dir, tmp_path):
    if not (sources := data_dir / near_sets.SOURCES).is_dir():
        pytest.skip(f"needs {near_sets.SOURCES}/, which python -m bench.evidence.near_sets downloads")
    near_sets.write_sets(tmp_path, sources)  # compares the checksums
    for path in (data_dir / near_sets.PAIRS).glob("*_dev.tsv"):
        assert (tmp_path / near_sets.PAIRS / path.name).read_bytes() == path.read_bytes()


def letters(texts: list[str]) -> np.ndarray:
    """Encode texts by how often they contain each letter."""
    return np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], float) + 1e-3


def test_runs_are_scored_on_the_test_parts(public, tmp_path, monkeypatch, capsys):
    data, page = tmp_path / "data", tmp_path / "page.md"
    near_sets.write_sets(data)
    monkeypatch.setattr(results, "EVIDENCE", tmp_path / "evidence.json")
    monkeypatch.setattr(near_scores, "PAGE", page)
    page.write_text("<!-- near tests: begin --><!-- near tests: end -->")
    monkeypatch.setattr(near_scores, "ROWS", (("near", "qqp_near", ""), ("number", "qqp_near", "number")))
    monkeypatch.setattr(near_scores, "load_encode", lambda name: letters)
    runs = [tmp_path / f"seed-{seed}" for seed in (5, 6, 7)]
    for run in runs:
        run.mkdir()
        (run / "run.json").write_text(json.dumps({"settings": {"seed": int(run.name[-1])}}))
    monkeypatch.setattr("sys.argv", ["near_scores", "--data", str(data), "--runs", *map(str, runs)])
    assert near_scores.main() == 0
    kept = results.read_evidence()["near_sets"]
    assert [*kept] == ["changed words", "before", "5", "6", "7"] and kept["5"] == kept["before"]
    pairs = read_pairs(data / near_sets.PAIRS / "qqp_near_test.tsv")
    n_same = sum(label for _, _, label, _ in pairs)
    assert kept["before"]["qqp_near"]["all"]["same"] == n_same
    table = near_scores.score_table(kept)
    assert table in page.read_text() and table in capsys.readouterr().out
    cells = table.splitlines()[2].split(" | ")
    assert cells[1] == f"{n_same} / {len(pairs) - n_same}" and cells[4].startswith(cells[3].split(" (")[0] + " ± 0.0 (")


def test_the_table_shows_intervals_over_pairs_and_seeds(monkeypatch):
    monkeypatch.setattr(near_scores, "ROWS", (("near", "a set", ""),))
    cosines = np.linspace(0, 1, 40)
    scores = PairScores(cosines, np.arange(40) % 2 > 0, np.full(40, ""))
    one = {"a set": near_scores.figures_of(scores)}
    low, high = scores.interval()
    before = f"{100 * scores.auc:.1f} ({100 * low:.1f} to {100 * high:.1f})"
    assert near_scores.score_table({"changed words": one, "before": one}).splitlines()[2] == (
        f"| near | 20 / 20 | {100 * scores.auc:.1f} | {before} |"
    )
    seeds = {str(seed): copy.deepcopy(one) for seed in range(3)}
    for seed, auc in enumerate((0.6, 0.7, 0.8)):
        seeds[str(seed)]["a set"]["all"] |= {"auc": auc, "auc_low": auc - 0.1, "auc_high": auc + 0.2}
    table = near_scores.score_table({"changed words": one, "before": one, **seeds})
    assert "| 70.0 ± 24.8 (60.0 to 90.0) |" in table  # 4.303 * 10 / sqrt(3), with 2 degrees of freedom
