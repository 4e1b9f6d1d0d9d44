"""Seven sentences, three times: one is blank, and some words are repeated within a sentence or occur in only one."""

CORPUS = [
    "The quick brown fox jumps over the lazy dog .",
    "A quick survey of brown bears found the forest empty .",
    "",
    "The the THE cat sat .",
    "Hello",
    "Bears jump over the forest when the survey is empty .",
    "Nobody found the lazy cat in the forest of bears .",
] * 3
