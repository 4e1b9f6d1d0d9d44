"""The index: a sequence of sentences, scores by equation 2, bit-identical on other processors."""

import os
import subprocess
import sys
import tracemalloc
from collections import Counter

import numpy as np
import pytest

import una_fast
from support import reference
from support.short_corpus import CORPUS
from una_fast.arrays import RaggedArray
from una_fast.index.scores import score_terms

TEXTS = ["The cat sat.", "", "A dog  ran, far!", "\u00e9t\u00e9 \U0001f600"]


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(TEXTS)


def test_an_index_is_a_sequence_of_its_sentences(index):
    assert len(index) == index.n_documents == 4
    assert [index[row] for row in range(4)] == list(index) == TEXTS and TEXTS[2] in index
    assert index[-1] == index[np.int64(3)] == TEXTS[3]
    assert (index[1:3], index[::-1], index[9:]) == (TEXTS[1:3], TEXTS[::-1], [])
    assert repr(index) == f"<una_fast.Index of 4 sentences, {index.n_terms} terms>"


@pytest.mark.parametrize("row", [4, -5, 10**30])
def test_a_row_out_of_range_is_refused(index, row):
    with pytest.raises(IndexError, match="0 to 3"):
        index[row]


@pytest.fixture(scope="module")
def short():
    return una_fast.build_index(CORPUS)


def test_scores_follow_equation_2(short):
    rows = [short.words(row) for row in range(short.n_documents)]
    assert list(short.terms) == reference.ranking(rows)
    idf = reference.idf(rows)
    np.testing.assert_allclose(short.idf, [idf[t] for t in short.terms], rtol=1e-15)
    z = short.tfidf()
    for row, words in enumerate(rows):
        expected = reference.tfidf(words, idf, 0.0)
        found = {short.terms[j]: v for j, v in zip(z[[row]].indices, z[[row]].data, strict=True)}
        assert found == pytest.approx(expected, rel=1e-14)
        counts = short.counts[[row]]
        found = dict(zip(counts.indices.tolist(), counts.data.tolist(), strict=True))
        assert found == Counter(short.word_ids[row].tolist())
    np.testing.assert_array_equal(z.tocsc().max(axis=0).toarray().ravel(), short.max_tfidf)


def test_dtypes_and_shapes_are_as_documented(short):
    v = short.n_terms
    for name, dtype in (("document_frequency", np.int64), ("idf", np.float64), ("max_tfidf", np.float64)):
        assert (getattr(short, name).dtype, getattr(short, name).shape) == (dtype, (v,))
    assert short.counts.shape == short.tfidf().shape == (short.n_documents, v)
    assert short.n_documents == len(CORPUS)
    assert short.sentence(3) == CORPUS[3]
    assert short.words(3) == ["the", "the", "the", "cat", "sat", "."]


def test_term_ids_are_a_mapping():
    index = una_fast.build_index(["one two two", "three é", "one"])
    expected = {term: i for i, term in enumerate(index.terms)}
    assert dict(index.term_ids) == expected and len(index.term_ids) == 4
    assert [index.term_ids.get(word) for word in ("é", "four", "")] == [expected["é"], None, None]
    with pytest.raises(KeyError, match="four"):
        index.term_ids["four"]


# instruction sets that not every x86-64 processor has. numpy and glibc only warn about names that they do not know
NUMPY_OFF = "X86_V4 X86_V3 AVX512_SPR AVX512_ICL AVX512_CNL AVX512_CLX AVX512_SKX AVX512F AVX512CD AVX2 FMA3 F16C AVX"
GLIBC_OFF = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX2_Usable,-FMA,-FMA_Usable,-FMA4"

PROGRAM = r"""
import hashlib, warnings
import numpy as np
import una_fast
warnings.simplefilter("ignore")
rng = np.random.default_rng(7)
words = np.array([f"w{i}" for i in range(3_000)])
lengths = rng.integers(1, 160, 1_057)
corpus = [" ".join(words[(3_000 * rng.random(n) ** 4).astype(int)]) for n in lengths]
# ln(1 + 14/37), ln(1 + 19/177) and ln(3/353), of 1,059 documents, differ between the C library's two versions
corpus += [" ".join([word] * n + words[n : rest].tolist()) for word, n, rest in (("often", 14, 37), ("many", 19, 177))]
assert 9 in una_fast.build_index(corpus).document_frequency
index = una_fast.build_index(corpus, n_jobs=1)
parts = {"numpy": np.log1p(np.arange(1, 100_000) / 100_003), "idf": index.idf, "max_tfidf": index.max_tfidf,
         "tfidf": index.tfidf().data, "terms": "\n".join(index.terms), "word_ids": index.word_ids.values,
         "fingerprint": index.fingerprint}
for variant in ("paper", "released"):
    una = una_fast.Augmenter(index, radius=50, seed=3, variant=variant)
    parts[variant] = "\n".join(una.texts(range(0, 1_059, 2), epoch=2))
    parts[variant + " text"] = "\n".join(una.augment([text + " unseen" for text in corpus[:200]]))
    parts[variant + " p"] = np.concatenate([una.replacement_probabilities(text)[1] for text in corpus[:200]])
for operation in ("swap", "delete"):
    parts[operation] = "\n".join(una_fast.EDA(index, operation=operation).texts(range(0, 1_059, 2)))
for name, value in parts.items():
    value = value.encode() if isinstance(value, str) else value.tobytes()
    print(name, hashlib.sha256(value).hexdigest(), sep="\t")
"""


def hashes(**environment: str) -> dict[str, str]:
    """Run PROGRAM in a process with these environment variables. Return the hash of each result that it prints."""
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(line.split("\t") for line in done.stdout.splitlines())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="glibc's switches")
def test_an_index_is_bit_identical_without_newer_cpu_instructions():
    here = hashes()
    old = hashes(NPY_DISABLE_CPU_FEATURES=NUMPY_OFF, GLIBC_TUNABLES=GLIBC_OFF)
    numpys = here.pop("numpy"), old.pop("numpy")
    assert old == here
    if numpys[0] == numpys[1]:
        pytest.skip("numpy's logarithms are the same without them, so this machine cannot show a difference")


@pytest.mark.parametrize(("n_terms", "n_words"), [(50, 20_000), (100_000, 200_000)])
def test_threads_give_the_same_scores_with_limited_memory(n_terms, n_words):
    ids = np.random.default_rng(0).permutation(np.arange(n_words, dtype=np.int32) % n_terms)
    words = RaggedArray(ids, np.arange(0, n_words + 1, 10))
    one = score_terms(words, n_terms, n_jobs=1)
    tracemalloc.start()
    many = score_terms(words, n_terms, n_jobs=16)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert all(map(np.array_equal, one, many))
    assert peak < words.values.nbytes + 60 * n_terms + 100_000  # one table for each of 16 threads would take 32 MB
