"""Words -> their synonyms: from WordNet, or from a table of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from una_fast.errors import InputError

Synonyms = Callable[[str], Sequence[str]]
FETCH = "python -m nltk.downloader wordnet"
# English words that carry grammar rather than meaning: they have no synonyms, as in EDA's code
FUNCTION_WORDS = frozenset(
    """
    a an the this that these those each every either neither some any no none all both few many much more most other
    another such own same i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves one who whom whose which what
    am is are was were be been being have has had having do does did doing done will would shall should can could may
    might must ought not n't 's 're 've 'll 'd 'm and or but nor so yet if then else than as because while until unless
    although though since whether of at by for with about against between into through during before after above below
    to from up down in out on off over under upon within without toward towards among along across behind beyond
    again further once here there when where why how very too just only also even ever never now
    """.split()
)


def open_synonyms(source: str | Path | Mapping[str, Sequence[str]] | None) -> Synonyms:
    """A function from a word to its synonyms, in a fixed order, itself not among them.

    Args:
        source: None for WordNet; a file of lines ``word<TAB>synonym<TAB>...``; or a dict of lists.

    Raises:
        InputError: nltk or its WordNet is missing, or the file cannot be read; the message says what to do.

    """
    if source is None:
        return wordnet_synonyms()
    if isinstance(source, Mapping):
        table = {word: _cleaned(word, synonyms) for word, synonyms in source.items()}
    elif isinstance(source, (str, Path)):
        table = read_table(Path(source))
    else:
        raise InputError(
            f"synonyms: got {type(source).__name__}: give a TSV file, a dict of lists, or None for WordNet"
        )
    return lambda word: table.get(word, ())


def read_table(path: Path) -> dict[str, list[str]]:
    """The synonyms by word of a file of lines ``word<TAB>synonym<TAB>...``; blank lines are skipped."""
    try:
        lines = path.read_bytes().decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"synonyms: {path}: {reason}: give lines of word<TAB>synonym<TAB>...") from error
    table: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        word, *synonyms = (part.strip() for part in line.split("\t"))
        if word and not any(synonyms):
            raise InputError(f"synonyms: {path}: line {number}: {word!r} has no synonym: give it one, after a tab")
        if word:
            table[word] = _cleaned(word, [*table.get(word, []), *synonyms])
    if not table:
        raise InputError(f"synonyms: {path}: it holds no word: give lines of word<TAB>synonym<TAB>...")
    return table


def wordnet_synonyms() -> Synonyms:
    """WordNet's synonyms by nltk: the lemmas of all senses of a word; none for function words."""
    try:
        from nltk.corpus import wordnet
    except ImportError as error:
        raise InputError("synonyms from WordNet need nltk: pip install 'una_fast[eda]', or give a TSV file") from error
    try:
        wordnet.ensure_loaded()
    except LookupError as error:
        raise InputError(
            f"synonyms: nltk's WordNet is not on this machine: run `{FETCH}`, or give a TSV file of your own"
        ) from error

    def synonyms(word: str) -> list[str]:
        if word in FUNCTION_WORDS or not any(map(str.isalpha, word)):
            return []
        lemmas = [name for sense in wordnet.synsets(word) for name in sense.lemma_names()]
        return _cleaned(word, [lemma.replace("_", " ").replace("-", " ").lower() for lemma in lemmas])

    return synonyms


def _cleaned(word: str, synonyms: Sequence[str]) -> list[str]:
    """Each synonym once, in order, with single spaces; not the word itself."""
    spaced = [" ".join(synonym.split()) for synonym in synonyms]
    return [synonym for synonym in dict.fromkeys(spaced) if synonym and synonym != word]
