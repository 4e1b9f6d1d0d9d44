"""Does `una_fast.probe` rank encoders as SugarCrepe++ does? ``python -m bench.probe_worth --data FOLDER``.

The encoders are the layers of the packaged MiniLM, each with mean, [CLS] and max pooling. They are probed on sentences
of Wikipedia with UNA's near-misses and, as a control, with random words replaced by random words. They are scored on
the subsets replace_* of SugarCrepe++. results/probe.json has all figures, docs/near-misses.md one rank correlation.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import Tensor

import una_fast
from bench import script
from bench.evidence.corpora import corpus_of
from bench.report import WIDTH, write_between_marks
from train.demo import packaged_encoder
from train.evaluation.model import Batches, load_model
from train.evaluation.tasks.registry import EvaluationProtocol, downstream_folder, read_task
from una_fast.storage.files import write_json

SENTENCES = 10_000  # the first lines of the corpus, from which the probe's sentences are drawn
N = 1000
TASKS = ("replace", "recall_at_5")
MEASURES = {  # what is computed from a probe; a higher value should mean a better encoder
    "distance": lambda found: found.distance,
    "1 - mean cosine of near-misses": lambda found: 1 - float(found.near_misses.mean()),
    "1 - threshold": lambda found: 1 - found.threshold,
}
POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    # states (n_texts, n_tokens, dimension), mask (n_texts, n_tokens, 1) -> (n_texts, dimension)
    "mean": lambda states, mask: (states * mask).sum(1) / mask.sum(1),
    "cls": lambda states, mask: states[:, 0],
    "max": lambda states, mask: states.masked_fill(mask == 0, -torch.inf).amax(1),
}


class Encoders:
    """One encoder for each layer and pooling of a model. All are computed together, and cached for each text.

    name: name or folder of the model.
    """

    def __init__(self, name: str) -> None:
        self.model = load_model(name, "avg", device="cpu")
        n_layers = self.model.network.config.num_hidden_layers
        self.names = [f"layer {layer}, {pooling}" for layer in range(1, n_layers + 1) for pooling in POOLINGS]
        self.known: dict[str, NDArray[np.float16]] = {}

    def _encode(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the embeddings of all encoders, concatenated: (n_texts, n_encoders * dimension)."""
        states = self.model.network(**batch, output_hidden_states=True).hidden_states[1:]
        mask = batch["attention_mask"][..., None]
        pooled = [torch.nn.functional.normalize(pool(one, mask)) for one in states for pool in POOLINGS.values()]
        return torch.cat(pooled, 1)

    def __call__(self, texts: list[str]) -> NDArray[np.float16]:
        """Return the normalised embeddings of all encoders: (n_texts, n_encoders, dimension)."""
        if new := [text for text in dict.fromkeys(texts) if text not in self.known]:
            embedded = Batches([new], self.model.tokenizer, 128).embed(self._encode, None).astype(np.float16)
            self.known |= dict(zip(new, embedded.reshape(len(new), len(self.names), -1), strict=True))
        return np.stack([self.known[text] for text in texts])

    def one(self, at: int) -> Callable[[list[str]], NDArray]:
        """Return encoder number `at` of `names`, as a function from texts to embeddings (n_texts, dimension)."""
        return lambda texts: self(texts)[:, at].astype(np.float32)


def measured(data: Path) -> dict[str, Any]:
    """Return scores and probes of every encoder, and the rank correlations of the measures with the scores."""
    encoders = Encoders(str(packaged_encoder()))
    index = una_fast.build_index(script.read_lines(corpus_of(data), SENTENCES))
    control = una_fast.Augmenter(index, beta=0.05, select="random", replace="random", surface="kept")
    tasks = [read_task(downstream_folder(data), name) for name in TASKS]
    found: dict[str, dict[str, dict[str, float]]] = {}
    for at, name in enumerate(encoders.names):
        encode = encoders.one(at)
        scores = {task.name: task.score([*map(encode, task.texts)], EvaluationProtocol()) for task in tasks}
        probes = {"UNA": una_fast.probe(encode, index, N)}
        probes["random words"] = una_fast.probe(encode, index, N, augmenter=control)
        figures = {f"{kind}, {measure}": of(one) for kind, one in probes.items() for measure, of in MEASURES.items()}
        found[name] = {"scores": scores, "probes": figures}
    correlations: dict[str, dict[str, float]] = {}
    for measure in figures:
        probed = [one["probes"][measure] for one in found.values()]
        scored = {task: [one["scores"][task] for one in found.values()] for task in TASKS}
        correlations[measure] = {task: float(spearmanr(probed, of).statistic) for task, of in scored.items()}
    return {"n": N, "encoders": found, "correlations": correlations}


def write_paragraph(data: Path) -> None:
    """Measure, save the figures to results/probe.json, and write a rank correlation into docs/near-misses.md."""
    content = measured(data)
    write_json(script.RESULTS / "probe.json", content)
    correlation = content["correlations"]["UNA, distance"]["replace"]
    said = (
        'Does the printed "distance of near-misses" predict scores on human-written near-misses? Over '
        f"{len(content['encoders'])} encoders (each layer of MiniLM, with mean, [CLS] or max pooling), its rank "
        f"correlation with the score on SugarCrepe++ `replace` is {correlation:+.2f}."
    )
    write_between_marks(script.DOCS / "near-misses.md", [textwrap.fill(said, WIDTH)])


if __name__ == "__main__":
    sys.exit(script.run(__doc__, write_paragraph, data=script.DATA))
