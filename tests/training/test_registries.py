"""Options whose values are rows of a registry, or import paths of user-defined losses, negatives and positives."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import una_fast
from support.small_runs import metrics, refused, train_here
from support.small_runs import options as small_options
from train.config import OPTIONS, make_run
from train.launch.prepare import PreparedRun
from train.losses import loss_spec
from una_fast.augment.registry import AUGMENTATIONS, load_augmentation, make_augmentation
from una_fast.errors import InputError
from una_fast.imports import import_object

OWN = """
import torch
from una_fast import WordAugmentation

class Backwards(WordAugmentation):
    "The words in the opposite order."

    def edit(self, words, draws):
        return words[::-1]

class Keywords(WordAugmentation):
    training_options = ("strength",)

    def __init__(self, index, strength=0.1, model="mine", **settings):
        super().__init__(index, **settings)
        self.strength, self.model = strength, model

    def edit(self, words, draws):
        return words[: max(1, round(self.strength * len(words)))]

def margin(views, temperature):
    unit = torch.nn.functional.normalize(views, dim=-1)
    similarity = unit[0] @ unit[1:].flatten(0, 1).T / temperature
    return torch.nn.functional.cross_entropy(similarity, torch.arange(len(similarity)))

def alone(views, temperature):
    return margin(views[:2], temperature)

alone.negative_views = 0
of_each = lambda views, temperature: views.sum((0, 2))
number = lambda views, temperature: 0.5
angular = lambda views, tau: views.sum()

def tied(views, temperature, start):
    return margin(views, temperature) + (views[:2] - start).square().sum()

LIMIT = 3
"""


@pytest.fixture
def own(tmp_path, monkeypatch) -> Iterator[Path]:
    """Make a working folder with user-defined modules, which Python does not search by default."""
    for name, code in {"own_parts": OWN, "broken": "x = 1\nraise OSError('no disk')"}.items():
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in ("own_parts", "broken"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("path", "named"), [
    ("no_such:thing", "'no_such'"), ("own_parts:thing", "own_parts.py.* 'thing'"),
    ("broken:thing", "broken.py, line 2"),
    ("own_parts:", "MODULE:NAME"),
])  # fmt: skip
def test_a_path_that_cannot_be_imported_is_named(own, path, named):
    with pytest.raises(InputError, match=f"^'{path}'.*{named}"):
        import_object(path)


def test_the_working_folder_is_searched_last(own):
    import_object("una_fast.losses:pairs")
    import_object("json:dumps")
    assert str(own) not in sys.path
    import_object("own_parts:margin")
    assert sys.path[-1] == str(own)


def test_custom_parts_train(own, tiny_model):
    """A loss, negatives and positives come from modules in the working folder."""
    one = small_options(own, tiny_model, max_steps=2, alpha=1)
    parts = {"loss": "own_parts:margin", "augment": "own_parts:Backwards", "positives": "own_parts:Keywords"}
    losses = []
    for number, settings in enumerate([parts, {"loss": "own_parts:margin"}, {"loss": "triplet"}]):
        output = own / f"run{number}"
        assert train_here({**one, **settings, "output": str(output)}).status == "finished"
        losses.append([line["loss"] for line in metrics(output) if "loss" in line])
    assert losses[1] == pytest.approx(losses[2])  # the custom loss computes the same
    assert losses[0] != losses[1]  # the custom negatives and positives are used
    strength = make_augmentation("own_parts:Keywords", una_fast.build_index(["a b c d", "e f"]), strength=0.5, seed=3)
    assert strength.augment(["a b c d"]) == ["a b"] and strength._settings["seed"] == 3


def test_a_class_gets_only_the_options_that_it_declares(own):
    index = una_fast.build_index(["a b c d", "e f"])
    offered = {"strength": 0.5, "model": "of the run", "beta": 0.1}
    made = make_augmentation("own_parts:Keywords", index, offered, seed=3)
    assert (made.strength, made.model) == (0.5, "mine")
    for name in AUGMENTATIONS:  # the constructor accepts what its class declares
        maker = load_augmentation(name)
        declared = getattr(maker, "func", maker).training_options
        parameters = inspect.signature(maker).parameters
        assert {*declared} <= parameters.keys()
        for option in {*declared} & OPTIONS.keys() - {"keep_words", "edits", "word_lists", "synonyms"}:
            assert parameters[option].default == OPTIONS[option].default  # the others have another type


def test_a_loss_with_a_start_parameter_gets_the_initial_embeddings(own):
    assert [loss_spec(f"own_parts:{name}").takes_start for name in ("margin", "alone", "tied")] == [False, False, True]
    views, start = torch.ones(3, 2, 4), torch.zeros(2, 2, 4)
    tied, margin = (loss_spec(f"own_parts:{name}").load() for name in ("tied", "margin"))
    assert tied(views, 1.0, start=start) > margin(views, 1.0)


def test_a_loss_that_is_not_a_single_number_is_refused(own, tiny_model):
    for name, returned in (("of_each", "shape (8,)"), ("number", "0.5")):
        said = refused(small_options(own, tiny_model, loss=f"own_parts:{name}", output=str(own / name)))
        assert said.startswith("--loss") and returned in said


def test_a_loss_without_negatives_has_none_by_default(own, tiny_model):
    run = PreparedRun(make_run(small_options(own, tiny_model, augment=None, loss="own_parts:alone"))).run
    assert run.augment == "none"
    with pytest.raises(InputError, match="--loss own_parts:alone"):
        PreparedRun(make_run(small_options(own, tiny_model, augment="una", loss="own_parts:alone")))


@pytest.mark.parametrize(("settings", "named"), [
    ({"loss": "own_parts:angular"}, "'own_parts:angular'.*temperature"), ({"loss": "no_such:loss"}, "'no_such:loss'"),
    ({"augment": "own_parts:Nothing"}, "'own_parts:Nothing'"), ({"augment": "own_parts:margin"}, "'own_parts:margin'"),
    ({"positives": "own_parts:LIMIT"}, "'own_parts:LIMIT'"), ({"loss": "marginal"}, "^--loss is 'marginal'.* pairs"),
    ({"augment": "eda"}, "^--augment is 'eda'.* una, near-misses, none"),
])  # fmt: skip
def test_parts_that_cannot_be_used_are_refused_before_the_corpus_is_read(own, tiny_model, settings, named):
    with pytest.raises(InputError, match=named):
        PreparedRun(make_run(small_options(own, tiny_model, **settings)))
