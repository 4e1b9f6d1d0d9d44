"""Scores encoders on the test parts of the near-misses: ``python -m bench.evidence.near_scores --data FOLDER``.

``--runs FOLDER ...`` are runs of one training, one per seed; without them, only the encoder before training is scored.
`bench.evidence.near_sets` makes the sets. The scores, of each group too, replace part "near_sets" of evidence.json, and
docs/near-misses.md gets their table. "changed words" is the baseline without a model: the fewer words two texts share,
the more similar they count.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from bench import script
from bench.evidence.near_sets import PAIRS
from bench.evidence.results import changed_evidence
from bench.report import over_seeds, table, write_between_marks
from train.demo import packaged_encoder
from train.record.folder import BEST, SUMMARY
from una_fast.pair_scores import PairScores, read_pairs, score_overlap, score_pairs
from una_fast.storage.files import read_json
from una_fast_cli.probe import load_encode

PAGE = script.DOCS / "near-misses.md"
OVERLAP, BEFORE = "changed words", "before"  # names in evidence.json; a run has the name of its seed
FIGURES = ("same", "near_misses", "auc", "auc_low", "auc_high")  # that evidence.json gets
ROWS = (  # of the table: label, set, group
    ("QQP, near-duplicates", "qqp_near", ""),
    ("... in a number", "qqp_near", "number"),
    ("... in polarity", "qqp_near", "polarity"),
    ("... in a name", "qqp_near", "name"),
    ("QQP, close pairs", "qqp_close", ""),
    ("QQP, all pairs", "qqp_all", ""),
    ("CheckList, templates", "checklist", ""),
    ("... in polarity", "checklist", "polarity"),
    ("PAWS, questions", "paws_qqp", ""),
    ("PAWS, Wikipedia", "paws_wiki", ""),
    ("Medical questions", "medical", ""),
)
Scores = Mapping[str, Mapping[str, Any]]  # encoder -> set -> group or "all" -> FIGURES


def score_runs(data: Path, before: str, runs: Iterable[Path]) -> None:
    """Score the encoders, keep their scores in evidence.json, and write the table into the page."""
    sets = {name: read_pairs(data / PAIRS / f"{name}_test.tsv") for name in dict.fromkeys(of for _, of, _ in ROWS)}
    scores: dict[str, dict[str, Any]] = {
        OVERLAP: {name: figures_of(score_overlap(pairs)) for name, pairs in sets.items()}
    }
    encoders = {
        BEFORE: before or packaged_encoder(),
        **{str(read_json(run / SUMMARY)["settings"]["seed"]): run / BEST for run in runs},
    }
    for encoder, folder in encoders.items():
        encode = load_encode(str(folder))
        scores[encoder] = {name: figures_of(score_pairs(encode, pairs)) for name, pairs in sets.items()}
    with changed_evidence() as content:
        content["near_sets"] = scores
    shown = score_table(scores)
    write_between_marks(PAGE, [shown], "near tests")
    print(shown)


def figures_of(scores: PairScores) -> dict[str, Any]:
    """Return FIGURES of all pairs of a set and of its groups, rounded."""
    found = scores.to_dict()
    parts = {"all": found, **found["groups"]}
    return {part: {name: round(figures[name], 4) for name in FIGURES} for part, figures in parts.items()}


def score_table(scores: Scores) -> str:
    """Return the Markdown table: AUC x 100 with its interval over pairs and, after training, ± over seeds."""
    seeds = [name for name in scores if name not in (OVERLAP, BEFORE)]
    rows = []
    for label, name, group in ROWS:
        found = {encoder: sets[name][group or "all"] for encoder, sets in scores.items()}
        pairs, trained = found[BEFORE], [found[seed] for seed in seeds]
        row = [label, f"{pairs['same']:,} / {pairs['near_misses']:,}", f"{100 * found[OVERLAP]['auc']:.1f}"]
        row.append(cell([pairs]))
        rows.append([*row, cell(trained)] if trained else row)
    return table(["", "pairs", OVERLAP, BEFORE, *(["after"] if seeds else [])], rows)


def cell(figures: list[Mapping[str, float]]) -> str:
    """Return the mean AUC of seeds, ± over seeds from three on, and the mean interval over pairs."""
    auc, low, high = (100 * fmean(one[name] for one in figures) for name in ("auc", "auc_low", "auc_high"))
    return f"{auc:.1f}{over_seeds([100 * one['auc'] for one in figures])} ({low:.1f} to {high:.1f})"


def main() -> int:
    before = {"default": "", "metavar": "NAME_OR_FOLDER", "help": "encoder that was trained [the packaged MiniLM]"}
    return script.run(__doc__, score_runs, data=script.DATA, before=before, runs=script.RUNS)


if __name__ == "__main__":
    sys.exit(main())
