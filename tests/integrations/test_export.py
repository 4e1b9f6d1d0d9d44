"""A trained encoder as ONNX and as OpenVINO, exported by sentence-transformers.

The packages that export need other versions of transformers than constraints.txt has: see docs/integrations.md.
"""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from support.small_runs import options, train_here

PACKAGES = {"onnx": "optimum.onnxruntime", "openvino": "optimum.intel.openvino"}
TEXTS = ["A market opens in the garden", "The river flows north past the old castle of the king", "An engine"]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("backend", PACKAGES)
def test_an_exported_encoder_gives_the_same_embeddings(backend, pooling, tiny_model, tmp_path):
    pytest.importorskip(PACKAGES[backend])
    train_here(options(tmp_path, tiny_model, max_steps=2, pooling=pooling))
    best, exported = str(tmp_path / "run" / "best"), str(tmp_path / backend)
    SentenceTransformer(best, backend=backend, device="cpu").save_pretrained(exported)
    assert list((tmp_path / backend).rglob("*.onnx" if backend == "onnx" else "openvino_model.xml"))
    found = SentenceTransformer(exported, backend=backend, device="cpu").encode(TEXTS)
    assert np.allclose(found, SentenceTransformer(best, device="cpu").encode(TEXTS), atol=1e-5)
