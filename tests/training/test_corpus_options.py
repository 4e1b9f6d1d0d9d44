"""How a run reads its corpus: options of `build_index`, paraphrases in several files, positives by augmentation."""

import contextlib
import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

import una_fast
from support.small_runs import options, refused, write_corpus
from support.token_ids import assert_ids
from train.config import Run, make_run
from train.corpus import TrainingCorpus
from train.ddp import command as train_command
from train.distributed import Ranks
from train.launch.prepare import PreparedRun
from train.neighbours import Neighbours
from train.record.checkpoint import first_difference
from una_fast.augment.registry import POSITIVES, make_augmentation
from una_fast.errors import InputError, InputWarning
from una_fast_cli.__main__ import main

RANKS = Ranks(0, 1, 0, torch.device("cpu"))


def prepared(values):
    """Build the index of a run. Return the run with resolved options, its training rows and its counts."""
    ready = PreparedRun(make_run(values))
    ready.corpus.make_index()
    return ready.run, ready.corpus.rows, ready.summary(1)["corpus"]


@pytest.mark.parametrize("given", ["paraphrases", "paraphrases/*.txt"])
def test_paraphrases_in_several_files_count_as_one_file(tmp_path, tiny_model, given):
    """70 paraphrases are in two files of a folder that also contains a file of another kind."""
    lines = write_corpus(tmp_path / "all.txt", seed=1).read_text().splitlines(keepends=True)
    split = tmp_path / "paraphrases"
    split.mkdir()
    for name, part in {"a.txt": lines[:30], "b.txt": lines[30:], "notes.md": ["# notes\n"]}.items():
        (split / name).write_text("".join(part))
    values = options(tmp_path, tiny_model, paraphrases=str(tmp_path / given))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # about notes.md
        run, _, counts = prepared(values)
        assert counts["sentences"] == 70
        index = una_fast.load_index(run.index)
        assert index[70] == (split / "a.txt").read_text().splitlines()[0]
        assert [Path(source["name"]).name for source in index.sources] == ["corpus.txt", "a.txt", "b.txt"]
        with (split / "b.txt").open("a") as file:
            file.write("one more\n")
        with pytest.raises(InputError, match="71 sentences .* 70"):
            prepared({**values, "index": str(tmp_path / "second")})


TABLE = 'text\n"the river\nand the castle"\n' + "a museum\n" * 20


@pytest.mark.parametrize(("quoting", "sentences"), [(None, 22), (False, 22), (True, 21)])
def test_quoting_is_an_option(tmp_path, tiny_model, quoting, sentences):
    (tmp_path / "table.tsv").write_text(TABLE)
    flags = {None: [], True: ["--quoting"], False: ["--no-quoting"]}[quoting]
    assert vars(train_command.parse_args(flags)).get("quoting") is quoting
    values = options(tmp_path, tiny_model, corpus=(str(tmp_path / "table.tsv"),), quoting=quoting)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        run, _, counts = prepared(values)
        assert counts["sentences"] == sentences
        prepared(values | {"output": str(tmp_path / "second"), "index": run.index})  # of the same options
        folder = tmp_path / "other"
        assert main(["index", str(tmp_path / "table.tsv"), "--output", str(folder), *flags]) == 0
        assert len(una_fast.load_index(folder)) == sentences


def test_the_longest_document_is_an_option(tmp_path, tiny_model):
    values = options(tmp_path, tiny_model, max_sentence_bytes=50)
    with pytest.raises(InputError, match="50 bytes.*--max-sentence-bytes"):
        prepared(values)
    assert prepared({**values, "max_sentence_bytes": 0})[2]["sentences"] == 70


@pytest.mark.parametrize("paraphrases", [(), ("copy.txt",)])
def test_further_sources_of_an_index_only_provide_words(tmp_path, tiny_model, paraphrases):
    values = options(tmp_path, tiny_model)
    sources = [Path(values["corpus"][0]), *(tmp_path / name for name in paraphrases)]
    for path in sources[1:]:
        path.write_text("a river\n" * 30 + "\n" + "a castle\n" * 39)
    (tmp_path / "big.txt").write_text("a zebra and a xylophone\n\n" * 50)
    una_fast.build_index([*sources, tmp_path / "big.txt"]).save(tmp_path / "big")
    values |= {"index": str(tmp_path / "big"), **({"paraphrases": str(sources[1])} if paraphrases else {})}
    _, rows, counts = prepared(values)
    assert "zebra" in list(una_fast.load_index(values["index"]).terms) and rows.max() < 70
    blank = {"blank": 2, "blank_paraphrases": 1 if paraphrases else 0}
    assert counts.items() >= {"sentences": 70, "trained_on": 67 if paraphrases else 68, **blank}.items()
    assert len(rows) == counts["trained_on"] and not {5, 11, *((30,) if paraphrases else ())} & {*rows}
    with pytest.raises(InputError, match="another corpus"):
        prepared({**values, "corpus": (str(tmp_path / "big.txt"),), "paraphrases": ""})


@pytest.fixture
def fingerprinted(tmp_path, tiny_model):
    """Return the folder of a run's files, and a function that returns the run's fingerprint."""
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    (folder / "modules.json").write_text('[{"type": "sentence_transformers.models.Transformer"}]')
    settings = json.loads((folder / "tokenizer_config.json").read_text())  # BERT's own class sets the case itself
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 64}')
    (tmp_path / "s.tsv").write_text("river\tstream\n")
    (tmp_path / "names.txt").write_text("river\n")
    files = {"synonyms": str(tmp_path / "s.tsv"), "keep_words": str(tmp_path / "names.txt")}
    values = options(tmp_path, folder, positives="eda-synonym", **files)
    index = una_fast.build_index(Path(values["corpus"][0]))

    def fingerprint(neighbours=None):
        ready = PreparedRun(make_run(values))
        ready.corpus.index, ready.neighbours = index, neighbours
        return ready.fingerprint

    return tmp_path, fingerprint


@pytest.mark.parametrize(("name", "change", "what"), [
    ("s.tsv", ("stream", "flow"), "synonyms"),
    ("names.txt", ("river", "castle"), "words to keep"),
    ("model/tokenizer.json", ('"lowercase": true', '"lowercase": false'), "model's tokenizer"),
    ("model/sentence_bert_config.json", ("64", "6"), "model's max_length"),
    ("model/config.json", ('"hidden_act": "gelu"', '"hidden_act": "relu"'), "model's config.json"),
    ("dev.tsv", ("5\t", "4\t"), "dev texts"),
])  # fmt: skip
def test_the_fingerprint_contains_what_changes_the_result(fingerprinted, name, change, what):
    folder, fingerprint = fingerprinted
    before = fingerprint()
    assert first_difference(before, fingerprint()) is None
    (folder / name).write_text((folder / name).read_text().replace(*change))
    assert first_difference(before, fingerprint())[0] == what


def test_the_fingerprint_contains_the_neighbours(fingerprinted):
    _, fingerprint = fingerprinted
    one, other = (fingerprint(Neighbours(np.arange(2), np.array(nearest))) for nearest in ([1, 0], [0, 1]))
    assert first_difference(one, other)[0] == "neighbours"


@pytest.mark.parametrize(("made", "asked", "named"), [
    ({}, {"lowercase": False}, "--lowercase"),
    ({"word_tokenizer": "shlex:split"}, {"word_tokenizer": "shlex:split"}, ""),
    ({"word_tokenizer": "shlex:split"}, {"word_tokenizer": "builtins:list"}, "word tokenizer"),
    ({"word_tokenizer": "whitespace"}, {}, "'whitespace'"),
])  # fmt: skip
def test_a_run_refuses_an_index_with_other_word_options(tmp_path, made, asked, named):
    una_fast.build_index(["The cat sits", "on the Mat"], **made).save(tmp_path / "index")
    with pytest.raises(InputError, match=named) if named else contextlib.nullcontext():
        run = Run(index=str(tmp_path / "index"), **asked)
        assert TrainingCorpus(run, frozenset(), None).index.n_documents == 2


@pytest.mark.parametrize("name", sorted(POSITIVES))
def test_positives_come_from_the_augmentation_of_that_name(tiny_model, tmp_path, name):
    words = "the river ran below a mountain while two birds sang".split()
    rng = np.random.default_rng(0)
    index = una_fast.build_index([" ".join(rng.permutation(words)) for _ in range(30)])
    (tmp_path / "synonyms.tsv").write_text("river\tstream\tbrook\nmountain\thill\nthe\ta\n")
    with_synonyms = {"synonyms": f"{tmp_path}/synonyms.tsv"} if name in ("eda-synonym", "eda-insert") else {}
    settings = {"positives": name, "positives_strength": 0.3, "seed": 7, "augment": "none", "max_length": 16}
    values = {"corpus": "c.txt", "model": str(tiny_model), "output": "o", "device": "cpu"}
    ready = PreparedRun(make_run({**values, **settings, **with_synonyms}))
    ready.corpus.index, tokenizer = index, AutoTokenizer.from_pretrained(tiny_model)
    maker = ready.batch_maker(RANKS)
    rows = np.array([4, 0, 17])
    anchors, positives = maker.views.of(1, 2, rows)
    texts = make_augmentation(name, index, {"strength": 0.3, **with_synonyms}, seed=7).texts(rows, 2)
    assert_ids(positives, tokenizer, texts, 16)
    assert not torch.equal(positives["input_ids"], anchors["input_ids"])


@pytest.mark.parametrize(("given", "named"), [
    ({"positives": "eda-synonym", "synonyms": "none.tsv"}, "none.tsv"),
    ({"augment": "near-misses", "word_lists": "none.txt"}, "word_lists: none.txt"),
    ({"augment": "una", "word_lists": "none.txt"}, "una"), ({"augment": "none", "word_lists": "none.txt"}, "none"),
    ({"augment": "una", "edits": "number:1"}, "--edits"),
    ({"augment": "near-misses", "edits": "numbr:2"}, "number"),
])  # fmt: skip
def test_bad_words_and_edits_are_refused_before_an_index_is_built(tmp_path, tiny_model, given, named):
    assert named in refused(options(tmp_path, tiny_model, **given))
    assert not (tmp_path / "index").exists()
