"""Scores verifiers on labelled pairs: ``python -m bench.evidence.verifier --name NAME --runs RUN ... --sets FILE ...``.

Each run is a folder of `train.verifier`; several runs of a name are seeds of the same settings. The scores are added to
results/evidence.json, part "verifiers", and docs/verifier.md gets a table of the verifier "packaged", and another of
those whose name begins with SMALL, which differ in one setting. All figures are times 100:

overlap, cosine, verifier   AUC of 1 - word overlap, of the encoder's cosine, and of the verifier
right, false                pairs of the same meaning and near-misses that pass the gate (cosine above 0.8, accepted)
cosine_right, check_right   pairs of the same meaning above the cosine that as many near-misses exceed; check_right
                            without the pairs that `una_fast.contradicts` finds
rejected                    pairs of the same meaning that the verifier rejects, whatever their cosine
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

import una_fast
from bench import report, script
from bench.evidence.results import changed_evidence, read_evidence
from bench.report import over_seeds
from train.demo import packaged_encoder
from train.record.environment import machine, versions
from train.record.folder import SUMMARY
from una_fast.pair_scores import Encode, PairScores, read_pairs, score_overlap, score_pairs
from una_fast.storage.files import read_json

SMALL = "small"
PAGE = script.DOCS / "verifier.md"
LEAST_COSINE = 0.8
COLUMNS = ("overlap", "cosine", "verifier", "right", "false", "cosine_right", "check_right", "rejected")
TITLES = {
    "cosine_right": "right: cosine",
    "check_right": "right: check",
    "right": "right: gate",
    "false": "false, all",
    "rejected": "wrongly rejected",
}


def scores_of(verifier: una_fast.Verifier, encode: Encode, pairs: list[tuple[str, str, int, str]]) -> dict[str, float]:
    """Return the figures of a verifier on one set, and for each group the share that it rejects, as "GROUP LABEL"."""
    cosines, overlap = score_pairs(encode, pairs), score_overlap(pairs)
    found = verifier.near_miss([pair[:2] for pair in pairs])
    checked = np.array([una_fast.contradicts(*pair[:2]) for pair in pairs])
    return figures(cosines, overlap, found, checked, verifier.threshold)


def figures(
    cosines: PairScores, overlap: PairScores, found: NDArray[Any], checked: NDArray[np.bool_], threshold: float
) -> dict[str, float]:
    """Return the figures of COLUMNS. found: the probability of each pair; checked: whether it contradicts; (n,)."""
    same, passes = cosines.same, (cosines.cosines > LEAST_COSINE) & (found <= threshold)
    false = float(passes[~same].mean())
    scores = {
        "overlap": overlap.auc,
        "cosine": cosines.auc,
        "verifier": PairScores.of(-found[same], -found[~same]).auc,
        "right": float(passes[same].mean()),
        "false": false,
        "cosine_right": right_at(cosines.cosines, same, int(passes[~same].sum())),
        "check_right": right_at(np.where(checked, -1, cosines.cosines), same, int(passes[~same].sum())),
        "rejected": float((found[same] > threshold).mean()),
    }
    for group in dict.fromkeys(cosines.groups.tolist()):
        for label in (True, False):
            chosen = (cosines.groups == group) & (same == label)
            if chosen.any():
                scores[f"{group} {int(label)}"] = float((found[chosen] > threshold).mean())
    return {name: round(100 * score, 2) for name, score in scores.items()}


def right_at(scores: NDArray[Any], same: NDArray[np.bool_], n_false: int) -> float:
    """Return the share of the pairs of the same meaning above the score that `n_false` near-misses exceed."""
    highest = np.sort(scores[~same])[::-1]
    return float((scores[same] > highest[min(n_false, len(highest) - 1)]).mean())


def keep(name: str, runs: Mapping[str, Any]) -> None:
    """Add the runs of a verifier, by seed, to evidence.json."""
    with changed_evidence() as content:
        content["verifiers"][name] = {**content["verifiers"].get(name, {}), **runs}


def table(runs: Mapping[str, Any]) -> str:
    """Return the Markdown table of one verifier: a row per set, the mean over seeds."""
    rows = [[name, *(mean_of(runs, name, of) for of in COLUMNS)] for name in next(iter(runs.values()))["scores"]]
    return report.table(["set", *(TITLES.get(column, column) for column in COLUMNS)], rows)


def mean_of(runs: Mapping[str, Any], name: str, column: str) -> str:
    """Return the mean of a figure over seeds, and half of its 95% interval if three or more seeds differ."""
    values = [run["scores"][name][column] for run in runs.values()]
    return f"{mean(values):.1f}{over_seeds(values) if len({*values}) > 1 else ''}"


def settings_table(verifiers: Mapping[str, Any]) -> str:
    """Return the Markdown table of the verifiers that differ in one setting: AUC by set, then wrong rejections."""
    shown = {name.removeprefix(f"{SMALL}, "): runs for name, runs in verifiers.items() if name.startswith(SMALL)}
    first = next(iter(shown.values()))
    sets = [*next(iter(first.values()))["scores"]]
    rows = [["`1 - word overlap`", *(mean_of(first, one, "overlap") for one in sets), ""]]
    rows += [
        [name, *(mean_of(runs, one, "verifier") for one in sets), mean_of(runs, "qqp_all", "rejected")]
        for name, runs in shown.items()
    ]
    return report.table(["", *sets, "qqp_all: wrongly rejected"], rows)


def score_runs(name: str, runs: Iterable[Path], sets: Iterable[Path]) -> None:
    """Score each run on each file, keep the scores, and write the page's table if the verifier is the packaged one."""
    from sentence_transformers import SentenceTransformer

    pairs, found = {file.stem.removesuffix("_test"): read_pairs(file) for file in sets}, {}
    for folder in runs:
        summary = read_json(folder / SUMMARY)
        encoder = summary["settings"]["model"]
        verifier = una_fast.Verifier(folder)
        encode = SentenceTransformer(
            str(encoder if Path(encoder).exists() else packaged_encoder()), device="cpu"
        ).encode
        scores = {of: scores_of(verifier, encode, its) for of, its in pairs.items()}
        about = {"settings": summary["resume_fingerprint"], "machine": {**machine(), **versions()}}
        found[str(summary["settings"]["seed"])] = {**about, "threshold": verifier.threshold, "scores": scores}
    keep(name, found)
    if name == "packaged":
        report.write_between_marks(PAGE, [table(found)], "verifier")
    if name.startswith(SMALL):
        report.write_between_marks(PAGE, [settings_table(read_evidence()["verifiers"])], "settings")
    print(table(found))


if __name__ == "__main__":
    sys.exit(
        script.run(
            __doc__,
            score_runs,
            name={"help": "what to call the verifier, such as packaged"},
            runs=script.RUNS | {"required": True, "help": "runs of train.verifier, one per seed"},
            sets={"type": Path, "nargs": "+", "metavar": "FILE", "help": "labelled pairs that chose no setting"},
        )
    )
