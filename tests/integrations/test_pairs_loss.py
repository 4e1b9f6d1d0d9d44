"""PairsLoss and ViewsLoss in sentence-transformers' trainer."""

import functools

import pytest
import torch
from sentence_transformers import SentenceTransformer

import una_fast
from support.sentence_trainer import Given, make_trainer
from support.small_runs import write_corpus
from una_fast.integrations.sentence_transformers import PairsLoss, ViewsLoss
from una_fast.losses import pairs, simcse, similarity_distillation, soft


@pytest.fixture
def views():
    drawn = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return [{"embedding": view} for view in drawn]


def passes(views, places):
    return torch.stack([views[place]["embedding"] + 0.01 * (1 + call) for call, place in enumerate(places)])


@pytest.mark.parametrize(("step", "places"), [(0, [0, 1, 2, 2]), (3, [0, 1, 2, 2]), (1, [0, 1]), (5, [0, 1])])
def test_pairs_loss_equals_the_loss_of_training(views, step, places):
    loss = PairsLoss(Given(), temperature=0.1, alpha=3)
    loss.step = step
    assert torch.equal(loss(views), pairs(passes(views, places), 0.1))


def shifted(views, temperature, start, weight=1.0):
    """Compute a user-defined loss that also uses the frozen copy's embeddings, `start`."""
    return simcse(views[:2], temperature) + weight * start.sum()


class Copied(Given):
    """A model that gives other embeddings in eval mode, the mode of the frozen copy."""

    def forward(self, features):
        moved = features["embedding"] if self.training else features["embedding"].flip(-1)
        return super().forward({"embedding": moved})


def test_any_loss_receives_its_options_and_the_embeddings_of_a_frozen_copy(views):
    drawn = passes(views, [0, 1, 2])
    assert torch.equal(ViewsLoss(Given(), soft, weight=0.7, least=0.4)(views), soft(drawn, 0.05, 0.7, 0.4))
    assert torch.equal(ViewsLoss(Given(), simcse)(views), simcse(drawn[:2], 0.05))
    start = torch.stack([views[0]["embedding"].flip(-1) + 0.01, views[2]["embedding"].flip(-1) + 0.02])
    loss = ViewsLoss(Copied(), shifted, temperature=0.1, similarity_distillation=2.0, weight=4.0)
    assert torch.allclose(loss(views), shifted(drawn, 0.1, start, 4.0) + 2 * similarity_distillation(drawn, start))
    expected = soft(drawn[:2], 0.05) + 2 * similarity_distillation(drawn, start)
    assert torch.allclose(ViewsLoss(Copied(), soft, alpha=0, similarity_distillation=2.0)(views), expected)
    assert "soft" in ViewsLoss(Given(), functools.partial(soft, weight=0.7)).get_config_dict()["loss"]
    own = ViewsLoss(Copied(), lambda views, temperature: views.sum() * temperature)
    assert torch.equal(own(views), drawn.sum() * 0.05)


def test_the_frozen_copy_is_neither_trained_nor_saved(tiny_model):
    model = SentenceTransformer(str(tiny_model), device="cpu")
    loss = ViewsLoss(model, shifted)
    assert {id(weights) for weights in loss.parameters()} == {id(weights) for weights in model.parameters()}
    assert not loss._start[0].training and not any(weights.requires_grad for weights in loss._start[0].parameters())


def test_evaluations_and_alpha_0_use_no_negatives(views):
    for loss in (PairsLoss(Given().eval(), alpha=1), PairsLoss(Given(), alpha=0)):
        assert torch.equal(loss(views), pairs(passes(views, [0, 1]), 0.05))


@pytest.mark.parametrize(("call", "named"), [
    (lambda views: PairsLoss(Given())(views), r"loss\.callback\(\)"),
    (lambda views: PairsLoss(Given(), alpha=1)(views[:2]), "anchor, positive and negative"),
    (lambda views: PairsLoss(Given(), alpha=-1), "^alpha=-1"),
    (lambda views: PairsLoss(Given(), alhpa=1), "'alhpa'.* alpha"),
    (lambda views: ViewsLoss(Given(), soft, wieght=1), "'wieght'.* weight"),
    (lambda views: PairsLoss(Given(), temperature=0, alpha=1)(views), "^temperature=0"),
    (lambda views: ViewsLoss(Given(), soft, similarity_distillation=-1), "^similarity_distillation=-1"),
])  # fmt: skip
def test_bad_settings_are_named(views, call, named):
    with pytest.raises(una_fast.InputError, match=named):
        call(views)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Return the folder of an index with 8 batches per epoch."""
    folder = tmp_path_factory.mktemp("pairs")
    una_fast.build_index(write_corpus(folder / "corpus.txt", 34)).save(folder / "index")
    return folder / "index"


def test_negatives_are_used_every_alpha_optimiser_steps(index, tiny_model, tmp_path):
    """Each of the four steps has two batches. Batches of steps 0 and 2 have four views, other batches two."""
    settings = {"num_train_epochs": 1, "gradient_accumulation_steps": 2}
    run = make_trainer(index, tiny_model, tmp_path, lambda model: PairsLoss(model, alpha=2), True, **settings)
    calls = []
    run.model.register_forward_hook(lambda *_: calls.append(1))
    counts = []
    run.loss.register_forward_hook(lambda *_: counts.append(len(calls)))
    run.train()
    assert [after - before for before, after in zip([0, *counts], counts, strict=False)] == [4, 4, 2, 2, 4, 4, 2, 2]


def test_the_model_card_cites_the_paper(index, tiny_model, tmp_path):
    run = make_trainer(index, tiny_model, tmp_path, PairsLoss, by_rows=False)
    run.model.save_pretrained(str(tmp_path / "model"))
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "loss:PairsLoss" in card and "Unsupervised hard Negative Augmentation" in card and '"alpha": 5' in card
