"""Write paraphrases or back-translations of a corpus, for `--paraphrases` of training.

``python -m train.generate paraphrase --model pegasus --corpus FILE --output FILE``
``python -m train.generate back-translation --model opus-mt-fr --corpus FILE --output FILE``
"""

from __future__ import annotations

import sys
from typing import Any

from train.config.command import Command
from train.generation.options import OPTIONS, read_job


def _run(values: dict[str, Any]) -> int:
    job = read_job(values)
    # imported late: --help and errors of the command line should not wait for torch
    from train.generation.write import write_output

    return write_output(job)


ABOUT = "Write a paraphrase or a back-translation of every sentence of a corpus, line by line."
main = Command("python -m train.generate", ABOUT, OPTIONS, _run, "generate", page="augmentations")

if __name__ == "__main__":
    sys.exit(main())
