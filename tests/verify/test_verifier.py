"""The object: both orders, abstention, calibration, stored texts, folders, and odd input. Its weights are random."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import una_fast
from una_fast.errors import InputError, InputWarning
from una_fast.verify.encoder import open_encoder
from una_fast.verify.model import EncodedText, compare, make_batch
from una_fast.verify.verifier import SETTINGS, WEIGHTS, Verifier, VerifierSettings, write_folder

WORDS = "the cat saw a dog into old house while rain fell on every roof in town".split()
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
PAIR = ("the cat saw a dog", "a dog saw the cat")


@pytest.fixture(scope="module")
def encoder(tiny_model):
    return open_encoder(tiny_model)


@pytest.fixture(scope="module")
def verifier(encoder, tmp_path_factory):
    torch.manual_seed(0)
    small = VerifierSettings(encoder.digest, encoder.width, max_tokens=40, width=16, heads=2, layers=2)
    model = small.model()
    with torch.no_grad():
        for weights in model.parameters():
            weights.copy_(torch.randn_like(weights))
    folder = tmp_path_factory.mktemp("verifier")
    write_folder(folder, small, model, encoder.name)
    return Verifier(folder, encoder=encoder)


@pytest.fixture
def folder(verifier, tmp_path):
    verifier.save(tmp_path / "saved")
    return tmp_path / "saved"


def plain_compare(a, b, words):
    """Return the partner of each token and the best cosine of the last layer, by loops over both texts."""
    last = [*a.embeddings.astype(np.float64), *b.embeddings.astype(np.float64)]
    word = [words[int(i)].double().numpy() for i in (*a.token_ids, *b.token_ids)]
    n, partners, best = len(a.token_ids), [], []
    for i in range(len(last)):
        others = range(n, len(last)) if i < n else range(n)
        partners.append(max(others, key=lambda j: (round(last[i] @ last[j] + word[i] @ word[j], 5), -j)))
        best.append(max(last[i] @ last[j] for j in others))
    return partners, best


@given(TEXTS, TEXTS)
def test_each_token_finds_the_partner_that_a_plain_loop_finds(verifier, a, b):
    if not a or not b:
        return
    first, second = verifier.encode([a, b])
    maps, match, partner = compare(make_batch([(first, second)], verifier._encoder.words))
    partners, best = plain_compare(first, second, verifier._encoder.words)
    assert np.allclose(match[0, :, 0], best, atol=1e-5)
    ids = [*first.token_ids, *second.token_ids]
    assert [ids[i] for i in partner[0].tolist()] == [ids[i] for i in partners]
    assert maps.shape == (1, len(ids), len(ids), 9)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6))
def test_both_orders_give_the_same_bits(verifier, pairs):
    forward, backward = verifier.near_miss(pairs), verifier.near_miss([pair[::-1] for pair in pairs])
    assert forward.dtype == np.float32 and np.array_equal(forward, backward)
    assert ((forward >= 0) & (forward <= 1)).all()


@settings(max_examples=40)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=6))
def test_padding_and_other_pairs_do_not_change_a_result(verifier, pairs):
    alone = [verifier.near_miss([pair])[0] for pair in pairs]
    assert np.allclose(verifier.near_miss(pairs), alone, atol=1e-5)


def test_the_network_itself_ignores_the_order(verifier):
    first, second = verifier.encode(PAIR)
    words = verifier._encoder.words
    with torch.inference_mode():
        logits = [verifier._model(make_batch([pair], words)) for pair in ((first, second), (second, first))]
    assert torch.allclose(*logits, atol=1e-3) and abs(float(logits[0])) > 0.1


def test_a_pair_is_ordered_without_a_copy_of_its_embeddings(verifier):
    class Embeddings(np.ndarray):
        def tobytes(self):
            raise AssertionError

    texts = [text._replace(embeddings=text.embeddings.view(Embeddings)) for text in verifier.encode(PAIR)]
    assert np.array_equal(verifier.near_miss([texts]), verifier.near_miss([PAIR]))


def test_encoded_texts_replace_texts(verifier):
    first, second = verifier.encode(PAIR)
    assert first.embeddings.dtype == np.float16 and first.token_ids.dtype == np.int32
    ids = verifier._encoder.tokenizer(PAIR[0], add_special_tokens=False)["input_ids"]
    assert first.token_ids.tolist() == ids and first.embeddings.shape == (len(ids), 32)
    expected = verifier.near_miss([PAIR])
    stored = EncodedText(*(np.array(array) for array in first))  # a copy, as a store returns it
    for pair in ((first, second), (stored, PAIR[1]), (PAIR[0], second)):
        assert np.array_equal(verifier.near_miss([pair]), expected)
    assert 0 < expected[0] < 1


@pytest.mark.parametrize(
    "pair",
    [
        ("", "the cat"),
        ("", ""),
        (" \n", "the cat"),
        ("the cat " * 5000, "the cat"),  # 10,000 tokens
        ("the cat", "кот преследовал собаку"),
        ("猫が犬を追いかけた", "犬が猫を追いかけた"),
        ("the cat", "the cat"),
        ("The cat", "the  cat"),  # the tokens of an uncased encoder are the same
    ],
)
def test_it_abstains_where_nothing_was_learned(verifier, pair):
    assert verifier.near_miss([pair])[0] == 0 and verifier.accepts([pair])[0]


def test_it_abstains_where_two_texts_share_too_few_tokens(verifier, tmp_path):
    write_folder(tmp_path, replace(verifier._settings, least_shared=0.5), verifier._model, verifier._encoder.name)
    strict = Verifier(tmp_path)
    pairs = [("the cat saw", "the cat fell"), ("the cat", "the dog"), ("the the cat", "cat the saw")]
    found, expected = strict.near_miss(pairs), verifier.near_miss(pairs)  # 2 of 4, 1 of 3 and 2 of 3 tokens are shared
    assert np.allclose(found, expected * [1, 0, 1], atol=1e-5) and (expected > 0).all()


def test_a_text_of_one_token_and_of_the_most_tokens_is_judged(verifier):
    most = " ".join(["the"] * 40)
    found = verifier.near_miss([("the", "a"), (most, "a"), (f"{most} the", "a")])
    assert [len(text.token_ids) for text in verifier.encode(["the", most, f"{most} the"])] == [1, 40, 0]
    assert (found[:2] > 0).all() and found[2] == 0


def test_accepts_is_the_threshold(verifier):
    pairs = [PAIR, ("rain fell on the roof", "rain fell in town")]
    found = verifier.near_miss(pairs)
    verifier.threshold = float(found.min())
    assert verifier.accepts(pairs).tolist() == (found <= found.min()).tolist()
    assert verifier.accepts([]).shape == (0,) and verifier.near_miss([]).dtype == np.float32


@settings(max_examples=40)
@given(st.integers(1, 30), st.floats(0, 0.9))
def test_calibration_rejects_at_most_the_share(verifier, n, share):
    pairs = [(f"the cat {WORDS[i % 15]} {WORDS[i // 3]}", f"a dog {WORDS[i % 7]}") for i in range(n)]
    near = [("rain fell", "rain fell in town", 0)]
    assert verifier.calibrate([(*pair, 1) for pair in pairs] + near, share) == verifier.threshold
    rejected = (~verifier.accepts(pairs)).mean()
    assert rejected <= share + 1e-9
    assert verifier.calibrate(pairs, share) == verifier.threshold  # pairs without labels mean the same


@pytest.mark.parametrize(("call", "named"), [
    (lambda v: v.near_miss("the cat"), "pairs"), (lambda v: v.near_miss(["the cat"]), "pairs.0."),
    (lambda v: v.near_miss([PAIR, ("a", "b", 1)]), "pairs.1."),
    (lambda v: v.near_miss([("a", None)]), "pairs.0.: None"),
    (lambda v: v.encode("the cat"), "texts"), (lambda v: v.encode(["a", 3]), "texts.1."),
    (lambda v: v.encode(["a", "b\udce9"]), "texts.1. .*character 1"),
    (lambda v: v.near_miss([PAIR, ("caf\udce9", "a")]), "pairs.1. .*surrogate"),
    (lambda v: v.calibrate([]), "none"), (lambda v: v.calibrate([(*PAIR, 0)]), "none"),
    (lambda v: v.calibrate([PAIR, (*PAIR, 2)]), "pairs.1.: label 2"), (lambda v: v.calibrate([PAIR, "ab"]), "pairs.1."),
    (lambda v: v.calibrate([PAIR, 5]), "pairs.1."), (lambda v: v.calibrate([PAIR, ("a",)]), "pairs.1."),
    (lambda v: v.calibrate([(*PAIR, 0), PAIR, ("a", None, 1)]), "pairs.2.: None"),
    (lambda v: v.calibrate([PAIR], 1.0), "^most_rejected=1.0"),
])  # fmt: skip
def test_wrong_input_is_named(verifier, call, named):
    with pytest.raises(InputError, match=named):
        call(verifier)


def test_damaged_stored_texts_are_refused(verifier):
    text = verifier.encode(["the cat saw a dog"])[0]
    nan = text.embeddings.copy()
    nan[2, 3] = np.nan
    for damaged, named in (
        (text._replace(embeddings=nan), "NaN"),
        (text._replace(embeddings=text.embeddings[:, :5]), r"float16 \(\d, 5\)"),
        (text._replace(token_ids=text.token_ids[:3]), r"token_ids int32 \(3,\)"),
        (text._replace(embeddings=text.embeddings.astype(str)), r"embeddings <U\d+"),
        (text._replace(embeddings=text.embeddings.tolist()), "embeddings list"),
        (text._replace(token_ids=text.token_ids.tolist()), "token_ids list"),
        (text._replace(token_ids=text.token_ids + 10**6), "vocabulary"),
        (EncodedText(np.tile(text.token_ids, 9), np.tile(text.embeddings, (9, 1))), "at most 40"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=named):
            verifier.near_miss([(damaged, "a dog")])


def test_an_encoder_that_gives_nan_is_refused(tiny_model, verifier, tmp_path):
    broken = open_encoder(tiny_model)
    with torch.no_grad():
        broken.network.get_input_embeddings().weight.fill_(torch.nan)
    write_folder(tmp_path, replace(verifier._settings, encoder=broken.digest), verifier._model, broken.name)
    with pytest.raises(InputError, match="NaN"):
        Verifier(tmp_path, encoder=broken).near_miss([PAIR])


def test_a_saved_verifier_gives_the_same_bits(verifier, folder, tiny_model):
    verifier.threshold = 0.25
    verifier.save(folder)
    again = una_fast.Verifier(folder)  # opens the encoder that the folder names
    assert again.threshold == 0.25 and sorted(path.name for path in folder.iterdir()) == [WEIGHTS, SETTINGS]
    assert np.array_equal(again.near_miss([PAIR]), verifier.near_miss([PAIR]))
    assert np.array_equal(
        una_fast.Verifier(folder, encoder=str(tiny_model)).near_miss([PAIR]), verifier.near_miss([PAIR])
    )


@pytest.mark.parametrize("threshold", [1.5, -0.1, float("nan"), "a", None])
def test_a_threshold_is_a_number_from_0_to_1(verifier, threshold):
    before = verifier.threshold
    with pytest.raises(InputError, match="^threshold="):
        verifier.threshold = threshold
    assert verifier.threshold == before


def test_calibration_needs_pairs_that_the_verifier_judges(verifier):
    before, abstained = verifier.threshold, [(PAIR[0], "")] * 99
    with pytest.raises(InputError, match="abstains from 99"):
        verifier.calibrate([PAIR, *abstained])
    assert verifier.threshold == before
    with pytest.warns(InputWarning, match="rests on 1 pair"):
        verifier.calibrate([PAIR])


def test_a_sentence_transformer_is_an_encoder_and_keeps_its_embeddings(verifier, folder, tiny_model):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tiny_model), device="cpu")
    before = model.encode([*PAIR])
    found = una_fast.Verifier(folder, encoder=model).near_miss([PAIR])
    assert np.array_equal(found, verifier.near_miss([PAIR])) and np.array_equal(before, model.encode([*PAIR]))


def test_another_encoder_is_refused(folder, tiny_model, tmp_path):
    shutil.copytree(tiny_model, tmp_path / "other")
    path = tmp_path / "other" / "model.safetensors"
    weights = load_file(path)
    name = next(name for name in weights if name.endswith("word_embeddings.weight"))
    save_file({**weights, name: weights[name] + 1e-3}, path, {"format": "pt"})
    for encoder, named in ((tmp_path / "other", "other"), (3, "SentenceTransformer")):
        with pytest.raises(InputError, match=named):
            una_fast.Verifier(folder, encoder=encoder)


@pytest.mark.parametrize("damage", [
    lambda f: (f / SETTINGS).unlink(), lambda f: (f / SETTINGS).write_text("{"),
    lambda f: (f / SETTINGS).write_text("[]"),
    lambda f: (f / WEIGHTS).unlink(), lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:-1]),
    lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:-1] + b"\xff"),
])  # fmt: skip
def test_a_mutilated_folder_is_refused(folder, damage):
    damage(folder)
    with pytest.raises(InputError, match=str(folder)):
        una_fast.Verifier(folder)


INVALID = {
    "format": [2], "layers": [10**9], "width": ["16"], "heads": [3], "threshold": [None, 7, float("nan")],
    "least_shared": ["all", -0.5], "scripts": [[3], "LATIN"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in INVALID for value in INVALID[name]])
def test_invalid_settings_in_a_folder_are_named(folder, name, value):
    path = folder / SETTINGS
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    with pytest.raises(InputError, match=name):
        una_fast.Verifier(folder)


@pytest.mark.parametrize("other", [{"layers": 3}, {"extra": 1}])
def test_settings_that_do_not_fit_the_weights_are_refused(folder, other):
    path = folder / SETTINGS
    path.write_text(json.dumps(json.loads(path.read_text()) | other))
    with pytest.raises(InputError, match=str(folder)):
        una_fast.Verifier(folder)


def test_weights_that_are_nan_are_refused(verifier, folder, encoder):
    model = verifier._settings.model()
    with torch.no_grad():
        model.norm.weight[0] = torch.nan
    write_folder(folder, verifier._settings, model, encoder.name)
    with pytest.raises(InputError, match="NaN"):
        una_fast.Verifier(folder)


@pytest.mark.slow
def test_a_hundred_thousand_pairs_at_once(verifier):
    texts = verifier.encode([f"the {WORDS[i % 16]} {WORDS[i % 7]} {WORDS[i % 11]}" for i in range(1000)])
    pairs = [(texts[i % 1000], texts[(i * 7) % 1000]) for i in range(100_000)]
    found = verifier.near_miss(pairs)
    assert found.shape == (100_000,) and np.isfinite(found).all()
    assert np.allclose(found[:10], verifier.near_miss(pairs[:10]), atol=1e-5)


def test_importing_una_fast_does_not_import_torch():
    code = "import sys, una_fast; una_fast.HarmlessEdits; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
