"""The command `una-fast`. It imports `una_fast` and `train`, and neither of them imports `una_fast_cli`."""
