"""Paraphrases and back-translations: seq2seq models write files that are aligned with a corpus line by line."""
