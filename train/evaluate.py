"""`python -m train.evaluate`: the scores of a model on SentEval's tasks, with their protocol."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from train.config.command import Parser, run_command
from train.encoder.pooling import AUTO, POOLINGS
from train.evaluation.protocol import AGGREGATES, MODES, PRECISIONS, EvaluationProtocol
from train.evaluation.senteval_files import downstream_folder
from train.evaluation.tasks.registry import choices, task_names
from train.record.files import write_json
from una_fast.errors import InputError


def build_parser(prog: str = "python -m train.evaluate") -> Parser:
    """The command line."""
    parser = Parser(prog=prog, description=__doc__)
    add = parser.add_argument
    add("--model", required=True, help="name on the Hugging Face hub, or folder")
    add("--data", help="folder that holds senteval/ or is one (default: UNA_FAST_DATA)")
    add("--tasks", default="sts", help=f"{choices()} (default: sts)")
    _add_protocol(parser)
    _add_running(parser)
    add(
        "--pairs",
        action="store_true",
        help="keep every pair's similarity and gold score in the file of --json, for train.report",
    )
    add("--json", type=Path, metavar="FILE", help="file for all scores and the protocol")
    return parser


def _add_protocol(parser: Parser) -> None:
    """The options that change the scores."""
    add = parser.add_argument
    add(
        "--mode",
        choices=MODES,
        default="test",
        help="as in SimCSE: test: test splits, with the classifiers of transfer tasks trained in full; fasttest: test "
        "splits, with classifiers trained for a shorter time; dev: dev splits, with the same classifiers as fasttest "
        "(default: test)",
    )
    add(
        "--aggregate",
        choices=AGGREGATES,
        default="all",
        help="how the subsets of an STS task become one score: all: the correlation over the pairs of all subsets; "
        "mean: the mean of the subsets' correlations; wmean: that mean, weighted by numbers of pairs (default: all)",
    )
    add(
        "--pooling",
        choices=(AUTO, *POOLINGS, "mean"),
        default=AUTO,
        help="how the vectors of a sentence's tokens become its embedding, by the names of SimCSE; auto: as the "
        "model's modules.json says, cls_before_pooler for a model without that file (default: auto)",
    )
    add(
        "--max-length",
        type=int,
        metavar="TOKENS",
        help="cut sentences that have more tokens, special tokens included (default: the model's own limit)",
    )
    add(
        "--held-out",
        action="store_true",
        help="near-miss: leave out the fifth of the images that --mode dev scores, for settings chosen on that fifth",
    )
    add("--whiten", action="store_true", help="whiten embeddings on each task's own sentences")
    add(
        "--precision",
        choices=PRECISIONS,
        default="fp32",
        help="number format of the encoder's arithmetic (default: fp32)",
    )


def _add_running(parser: Parser) -> None:
    """The options of where and how the model runs."""
    add = parser.add_argument
    add("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    add(
        "--nproc",
        type=int,
        default=1,
        metavar="N",
        help="number of GPUs that share the sentences (default: 1); on a CPU, give --threads instead",
    )
    add(
        "--threads",
        type=int,
        metavar="N",
        help="CPU threads, each of which encodes a batch of its own (default: PyTorch's choice)",
    )
    add(
        "--trust-remote-code",
        action="store_true",
        help="run Python code that the model brings along; without it, such a model is refused",
    )


def main(arguments: Sequence[str] | None = None, prog: str = "python -m train.evaluate") -> int:
    """Run the command and return its exit code."""
    return run_command(lambda: _run(build_parser(prog).parse_args(arguments)), "evaluate")


def model_folder(name: str) -> str:
    """`name`, or its best/ if it is the folder of a training run; a note on stderr then says so."""
    folder = Path(name)
    if (folder / "best" / "config.json").is_file() and not (folder / "config.json").exists():
        print(f"note: {name} is the folder of a training run: its best/ is evaluated", file=sys.stderr)
        return str(folder / "best")
    return name


def _run(options: Namespace) -> int:
    if options.max_length is not None and options.max_length < 3:
        raise InputError(
            f"--max-length is {options.max_length}: it must be at least 3, for two special tokens and a word"
        )
    for name in ("threads", "nproc"):
        if (value := getattr(options, name)) is not None and value < 1:
            raise InputError(f"--{name} is {value}: it must be at least 1")
    protocol = EvaluationProtocol(
        mode=options.mode,
        aggregate=options.aggregate,
        pooling=options.pooling,
        max_length=options.max_length,
        whiten=options.whiten,
        precision=options.precision,
        keep_pairs=options.pairs,
        held_out=options.held_out,
    )
    names, downstream = task_names(options.tasks, options.mode), downstream_folder(options.data)
    # imported late: --help and errors of the command line should not wait for torch
    import torch

    from train.evaluation.scoring import score_model
    from train.evaluation.table import format_results

    if options.threads:
        torch.set_num_threads(options.threads)
    model = model_folder(options.model)
    trust = options.trust_remote_code
    results = score_model(model, downstream, names, protocol, options.device, options.nproc, trust)
    print(format_results(results))
    print(f"\n{results.n_tasks} of {len(names)} tasks in {results.seconds:.1f} s on {torch.get_num_threads()} threads")
    if options.json:
        write_json(options.json, results.to_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
