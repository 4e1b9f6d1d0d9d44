"""A corpus of seven sentences, three times: repeated words, words of one sentence, a blank line."""

CORPUS = [
    "The quick brown fox jumps over the lazy dog .",
    "A quick survey of brown bears found the forest empty .",
    "",
    "The the THE cat sat .",
    "Hello",
    "Bears jump over the forest when the survey is empty .",
    "Nobody found the lazy cat in the forest of bears .",
] * 3
