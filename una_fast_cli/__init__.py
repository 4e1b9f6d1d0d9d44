"""The command `una-fast`. It imports `una_fast` and `train`, and neither imports it."""
