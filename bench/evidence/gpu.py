"""Check that a process can use the GPU, if the machine has one: ``python -m bench.evidence.gpu``."""

import sys

import torch


def main(words: list[str]) -> int:
    """Return 0, or raise an exception if this process cannot use the GPU.

    For example, CUDA refuses a process that was forked from a process that had used the GPU.
    """
    torch.ones(1, device="cuda" if torch.cuda.device_count() else "cpu").sum().item()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
