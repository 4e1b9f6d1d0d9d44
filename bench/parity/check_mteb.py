"""Compare mteb's STS scores of a model with those of `train.evaluate`, without a network: mteb gets SentEval's pairs.

    python -m bench.parity.check_mteb --model runs/una/best --data senteval

Needs `pip install mteb`. Prints one row per task: the number of pairs in mteb's data (from the statistics that mteb
ships) and in SentEval's, and Spearman x 100 by mteb with SentenceTransformer(model) and by `train.evaluate`. SICK-R has
two rows, because mteb scores all of SICK, and SentEval the test split. The exit code is 1 if a difference is above
TOLERANCE.
"""

import sys
import warnings
from pathlib import Path

import mteb
import numpy as np
from datasets import Dataset, DatasetDict
from sentence_transformers import SentenceTransformer

from bench import script
from train.evaluation.model import load_model
from train.evaluation.scoring import evaluate
from train.evaluation.tasks.reading import normalise_spaces, parse_score, read_rows
from train.evaluation.tasks.registry import EvaluationProtocol, downstream_folder, suite
from train.evaluation.tasks.sts import StsTask, read

SICK_FILES = ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt")
TOLERANCE = 0.01  # Spearman x 100; mteb computes cosines in float32, we in float64, so near ties may swap ranks


def all_of_sick(downstream: Path) -> StsTask:
    """Return the pairs of SICK's three splits as one task, because mteb scores them together."""
    files = [downstream / "SICK" / name for name in SICK_FILES]
    rows = [row for path in files for row in read_rows(path, (3, 1, 2), parse_score, skip=1)]
    gold, *sides = zip(*rows, strict=True)
    return StsTask("SICK, all splits", [*map(normalise_spaces, sides)], {"test": len(rows)}, np.array(gold))


def mtebs_score(model: SentenceTransformer, task: StsTask, name: str) -> tuple[int, float]:
    """Return how many pairs mteb's data has, and the score of mteb's task `name` on our pairs.

    The score is Spearman x 100 of the cosines.
    """
    theirs = mteb.get_task(name)
    first, second = task.texts
    pairs = Dataset.from_dict({"sentence1": first, "sentence2": second, "score": task.gold.tolist()})
    theirs.dataset, theirs.data_loaded = DatasetDict(test=pairs), True
    result = mteb.evaluate(model, theirs, cache=None, co2_tracker=False, show_progress_bar=False)
    score = result.task_results[0].scores["test"][0]["cosine_spearman"]
    return theirs.metadata.descriptive_stats["test"]["num_samples"], 100 * score


def check(model: str, data: str) -> int:
    """Print the scores of each task. Returns 1 if two differ by more than TOLERANCE."""
    warnings.filterwarnings("ignore", module="mteb")  # it cannot reach the hub for metadata
    downstream = downstream_folder(data or None)
    tasks = [read(downstream, name) for name in suite("sts")] + [all_of_sick(downstream)]
    ours = evaluate(load_model(model, device="cpu"), tasks, EvaluationProtocol())["sts"]
    encoder, far = SentenceTransformer(model, device="cpu"), False
    print(f"{'task':<18}{'pairs in mteb':>14}{'here':>8}{'mteb':>10}{'ours':>10}{'difference':>12}")
    for task in tasks:
        name = "SICK-R" if task.name.startswith("SICK") else task.name
        n_pairs, theirs = mtebs_score(encoder, task, name)
        score = 100 * ours[task.name]["spearman"]["all"]
        far |= abs(theirs - score) > TOLERANCE
        print(f"{task.name:<18}{n_pairs:>14,}{len(task.gold):>8,}{theirs:>10.4f}{score:>10.4f}{theirs - score:>+12.4f}")
    return int(far)


if __name__ == "__main__":
    sys.exit(
        script.run(
            __doc__,
            check,
            model={"help": "best/ of a run, or any SentenceTransformer"},
            data={"default": "", "help": "folder that contains senteval/, or senteval/ itself [UNA_FAST_DATA]"},
        )
    )
