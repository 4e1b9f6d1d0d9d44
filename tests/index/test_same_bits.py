"""An index and its draws have the same bits on processors with other instruction sets.

The test switches off the newer instructions.
"""

import os
import subprocess
import sys

import pytest

# instruction sets beyond those of every x86-64 processor; numpy and glibc warn about names that they do not know
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


def parts(**environment: str) -> dict[str, str]:
    """The hash of each part, computed in a process with these environment variables."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split("\t") for line in done.stdout.splitlines())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="glibc's switches")
def test_an_index_has_the_same_bits_without_newer_instructions() -> None:
    here = parts()
    old = parts(NPY_DISABLE_CPU_FEATURES=NUMPY_OFF, GLIBC_TUNABLES=GLIBC_OFF)
    numpys = here.pop("numpy"), old.pop("numpy")
    assert old == here
    if numpys[0] == numpys[1]:
        pytest.skip("numpy's logarithms are the same without them, so this machine shows nothing")
