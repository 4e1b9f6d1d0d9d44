"""Check that a process can use the GPU, if the machine has one: ``python -m bench.evidence.gpu``."""

import sys

import torch


def main(words: list[str]) -> int:
    """Return 0, or raise an exception: CUDA refuses a process whose parent has used it."""
    torch.ones(1, device="cuda" if torch.cuda.device_count() else "cpu").sum().item()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
