"""Changes of a text by word lists and sentence patterns: those that keep its meaning, and those that reverse it.

Each function gets a text and its random numbers, and returns the changed text, or None if it does not fit. With
``wrong=True`` it makes a near-miss of the same shape: "A was built by B" becomes "B was built by A".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

from una_fast.augment.draws import Draws
from una_fast.augment.word_lists import FUNCTION, read_word_lists
from una_fast.augment.wordnet import WordNet, inflected

Change = Callable[[str, Draws], "str | None"]
Match = re.Match[str]
FILE = Path(__file__).with_name("rewordings.txt")
PUT_IN_ONLY = "<"  # marks a phrase that others become, and that stays as it is
# At most 16 words of at most 61 letters: without a limit, each word of a long title was the start of a search to its
# end, which took 4 seconds for 22,000 characters.
NAME = r"[A-Z][\w'-]{0,60}(?: (?:of |the )?[A-Z][\w'-]{0,60}){0,15}"
WORD = r"[a-z][\w-]{1,60}"
NOUN = rf"(?:(?:[Tt]he |[Aa]n? |[Mm]y |[Hh]is |[Hh]er |[Tt]heir )?(?:{NAME}|{WORD}))"
THING = rf"(?:(?:[Tt]he|[Aa]n?|[Mm]y|[Hh]is|[Hh]er|[Tt]heir) {WORD}|(?:[Tt]he )?{NAME})"
MARKS = "?.! "  # that end a sentence
END = rf"([{MARKS}]*)$"
AUXILIARY = "is are was were do does did can could should will would has have".split()
CLAUSE = "In On At During After Before With By Under From When If While Because Since Although For".split()
MOVABLE = "in on at during after before when while because since".split()  # they begin what can move to the front
VERB = r"(?!need|speed|feed|seed|breed|bleed|proceed|exceed)\w{2,}ed"  # a regular past form


def read_sections(file: Path) -> dict[str, list[str]]:
    """Read a packaged file: name of a section -> its lines, without comments."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = sections.setdefault(line.strip("[]"), [])
        elif not line.startswith("#"):
            lines.append(line)
    return sections


def items_of(line: str) -> list[str]:
    """Return what "|" separates in a line of a section."""
    return [item.strip() for item in line.split("|")]


@lru_cache(1)
def read_rewordings() -> dict[str, list[list[str]]]:
    """Read rewordings.txt: name of a section -> its lines, each a list of phrases."""
    return {name: [items_of(line) for line in lines if line] for name, lines in read_sections(FILE).items()}


class Exchange:
    """Replaces a phrase of a text with another phrase of its line, with the old phrase's capitalisation.

    at_start: look only at the beginning of the text.
    """

    def __init__(self, lines: Iterable[Sequence[str]], at_start: bool = False):
        self.others: dict[str, list[str]] = {}
        for line in lines:
            bare = [phrase.removeprefix(PUT_IN_ONLY) for phrase in line]
            for phrase in line:
                if not phrase.startswith(PUT_IN_ONLY):
                    others = [other for other in bare if other != phrase]
                    known = self.others.setdefault(phrase, [])
                    known += [other for other in others if other not in known]
        longest_first = "|".join(map(re.escape, sorted(self.others, key=len, reverse=True)))
        edge = "^" if at_start else r"(?<![\w'-])"
        self._pattern = re.compile(rf"{edge}({longest_first})(?![\w'-])", re.IGNORECASE)

    def __call__(self, text: str, draws: Draws) -> str | None:
        """Return `text` with one exchanged phrase, or None if it has none."""

        def other(match: Match) -> str:
            return capitalised_like(match[0], draws.pick(self.others[match[0].lower()]))

        return replaced_once(text, draws, self._pattern.finditer(text), other)


def replaced(text: str, match: Match, new: str) -> str:
    """Return `text` with `new` instead of a match."""
    return text[: match.start()] + new + text[match.end() :]


def replaced_once(text: str, draws: Draws, found: Iterable[Match], new: Callable[[Match], str]) -> str | None:
    """Draw one of the matches and replace it with what `new` returns for it. Return None if there is no match."""
    found = [*found]
    if not found:
        return None
    match = draws.pick(found)
    return replaced(text, match, new(match))


def capitalised_like(old: str, new: str) -> str:
    """Give `new` a capital if `old` has one and is not all capitals."""
    return new[:1].upper() + new[1:] if old[:1].isupper() and not (len(old) > 1 and old.isupper()) else new


def lowered(text: str) -> str:
    """Make the first letter small, unless the first word is a name: "I", or a capital that the next word has too."""
    first, _, rest = text.partition(" ")
    is_name = first in ("I", "I'm", "I'd", "I've") or first.isupper() or (rest[:1].isupper() and first not in STARTS)
    return text if is_name else text[:1].lower() + text[1:]


def _inside(name: str) -> str:
    """Return a name or noun phrase as it is written inside a sentence."""
    return lowered(name) if name.split(" ")[0] in STARTS else name


def raised(text: str) -> str:
    """Make the first letter a capital."""
    return text[:1].upper() + text[1:]


FUNCTION_WORDS = read_word_lists().words[FUNCTION]
STARTS = {word.capitalize() for word in FUNCTION_WORDS}


def _lists(name: str) -> list[str]:
    return [item for line in read_rewordings()[name] for item in line]


def filler(text: str, draws: Draws) -> str | None:
    """Put in words that say nothing: before the text, behind it, or after an auxiliary."""
    kind, line = draws.unit(), text.removesuffix("\n")
    body = line.rstrip(MARKS)
    if kind < 0.4:
        return f"{draws.pick(_lists('fillers before'))} {lowered(text)}"
    if kind < 0.6:
        asks = text.rstrip().endswith("?")
        behind = draws.pick(_lists("fillers behind" if asks else "fillers behind statements"))
        return f"{body}, {behind}{line[len(body) :]}"
    subject = r"(?:it|they|we|he|she|you|I|there) |(?:[a-z][\w'-]* )+"
    pattern = rf"\b(?:{'|'.join(AUXILIARY)}) (?:{subject})?(?=\w)"
    found = (match for match in re.finditer(pattern, text, re.IGNORECASE) if match.end() < len(body))
    return replaced_once(text, draws, found, lambda match: f"{match[0]}{draws.pick(_lists('fillers inside'))} ")


def article(text: str, draws: Draws) -> str | None:
    """Leave out an article, or put "the" after a preposition."""
    places = [*re.finditer(r"(?<=\w )(?:the|an?|some) (?=[a-z])", text)]
    if places and draws.unit() < 0.7:
        return replaced_once(text, draws, places, lambda match: "")
    places = [*re.finditer(r"\b(?:in|of|for|with|on|about) (?=[a-z]+s\b)", text)]
    return replaced_once(text, draws, places, lambda match: f"{match[0]}the ")


def marks(text: str, draws: Draws) -> str | None:
    """Change punctuation or capitals."""
    options = [text.rstrip(MARKS), text.replace(",", ""), text.replace('"', ""), text.replace("-", " "), text.lower()]
    options = [option for option in options if option != text]
    return draws.pick(options) if options else None


def coordinated(text: str, draws: Draws) -> str | None:
    """Turn "A and B" into "B and A"."""
    found = [
        match
        for match in re.finditer(rf"\b({NAME}|[\w-]{{1,61}}) (and|or) ((?:the |a |my )?)({NAME}|[\w-]{{1,61}})", text)
        if not {match[1].lower(), match[4].lower()} & FUNCTION_WORDS and match[1] != match[4]
    ]

    def turned(match: Match) -> str:
        first, second = match[3] + match[4], match[1]
        if match.start() == 0:
            first, second = raised(first), lowered(second)
        return f"{first} {match[2]} {second}"

    return replaced_once(text, draws, found, turned)


def fronted(text: str, draws: Draws) -> str | None:
    """Move a clause or a phrase from the start to the end, or the other way round."""
    if match := re.match(rf"((?:{'|'.join(CLAUSE)}) [^,]{{3,60}}), ([^,]{{10,}}?){END}", text):
        return f"{raised(match[2])} {match[1][0].lower()}{match[1][1:]}{match[3]}"
    match = re.match(rf"([^,]{{12,}}?) ((?:{'|'.join(MOVABLE)})(?: [\w'-]+){{1,7}}?){END}", text)
    if not match or match[1].split()[-1].lower() in FUNCTION_WORDS or not {*AUXILIARY}.isdisjoint(match[2].split()):
        return None
    return f"{raised(match[2].strip())}, {lowered(match[1])}{match[3]}"


def time_order(text: str, draws: Draws, wrong: bool = False) -> str | None:
    """Turn "X before Y" into "Before Y, X"; wrongly: into "X after Y" or "Y before X"."""
    match = re.match(rf"(.{{6,}}?) (before|after) (\w+(?: \w+){{0,7}} ?){END}", text)
    if not match:
        return None
    first, word, second, end = match.groups()
    other = "after" if word == "before" else "before"
    if wrong:
        return draws.pick([f"{first} {other} {second}", f"{raised(other)} {second}, {lowered(first)}"]) + end
    return f"{raised(word)} {second}, {lowered(first)}{end}"


def passive(text: str, draws: Draws, wrong: bool = False) -> str | None:
    """Turn "A was built by B" into "B built A"; wrongly: into "A built B" or "B was built by A"."""
    if " by " not in text:
        return None
    where = r"( (?:in|on|at|for|during) [^,;]+)?"
    match = re.match(rf"([^,;]{{3,60}}?) (was|were) ({VERB}) by ([^,;]{{3,50}}?){where}{END}", text)
    if not match or match[1].split()[0].lower() in ("it", "he", "she", "they", "this", "who", "which", "there"):
        return None
    what, be, verb, who, rest, end = match.groups()
    if what.endswith(" and"):
        return None
    what, rest = lowered(what), rest or ""
    if wrong:
        return draws.pick(
            [f"{raised(what)} {verb} {who}{rest}{end}", f"{raised(who)} {be} {verb} by {what}{rest}{end}"]
        )
    return f"{raised(who)} {verb} {what}{rest}{end}"


def active(text: str, draws: Draws, wrong: bool = False) -> str | None:
    """Turn "A defeated B" into "B was defeated by A"; wrongly: into "A was defeated by B" or "B defeated A"."""
    match = re.match(rf"((?:[Tt]he )?{NAME}) ({VERB}) ((?:the )?{NAME})( (?:in|on|at|for|during) [^,;]+)?{END}", text)
    if not match:
        return None
    who, verb, what, rest, end = match.groups()
    if wrong:
        new = draws.pick([f"{raised(what)} {verb} {_inside(who)}", f"{who} was {verb} by {what}"])
        return f"{new}{rest or ''}{end}"
    return f"{raised(what)} was {verb} by {_inside(who)}{rest or ''}{end}"


def compared(text: str, draws: Draws, wrong: bool = False) -> str | None:
    """Turn "A is older than B" into "B is younger than A"; wrongly: exchange only the adjective, or only A and B."""
    if " than " not in text:
        return None
    opposites = {a: b for line in read_rewordings()["comparatives"] for a, b in (line, line[::-1])}
    words = "|".join(opposites)
    match = re.search(rf"\b({THING}) ((?:\w+ ){{0,2}}?)({words}) ((?:\w+ )?)than ({THING})", text)
    if not match or match[1].lower() in FUNCTION_WORDS:
        return None
    first, verb, more, what, second = match.groups()
    less = opposites[more]
    sides = draws.pick([(second, more, first), (first, less, second)]) if wrong else (second, less, first)
    if match.start() == 0:
        sides = raised(sides[0]), sides[1], _inside(sides[2])
    return replaced(text, match, f"{sides[0]} {verb}{sides[1]} {what}than {sides[2]}")


def genitive(text: str, draws: Draws) -> str | None:
    """Turn "the king of Spain" into "Spain's king", or the other way round."""
    if match := re.search(rf"\bthe ([a-z]+) of ({NAME})(?=[ ,.?])", text):
        return replaced(text, match, f"{match[2]}'s {match[1]}")
    match = re.search(r"\b([A-Z]\w+)'s ([a-z]+)\b", text)
    return match and replaced(text, match, f"the {match[2]} of {match[1]}")


def symmetric(text: str, draws: Draws) -> str | None:
    """Turn "A is related to B" into "B is related to A"."""
    relations = "|".join(_lists("symmetric"))
    match = re.search(rf"\b({NOUN}) ({relations}) ({NOUN})(?=[ ,.?]|$)", text)
    if match and not {match[1].lower(), match[3].lower()} & FUNCTION_WORDS:
        first, second = match[3], _inside(match[1])
        if match.start() == 0:
            first = raised(first)
        return replaced(text, match, f"{first} {match[2]} {second}")
    inverted = "|".join(phrase.removeprefix("is ") for phrase in _lists("symmetric") if phrase.startswith("is "))
    match = re.match(rf"((?:Is|Was) )({NOUN}) ({inverted}) ({NOUN}){END}", text)
    return match and f"{match[1]}{match[4]} {match[3]} {match[2]}{match[5]}"


def from_to(text: str, draws: Draws, wrong: bool = False) -> str | None:
    """Turn "from A to B" into "to B from A"; wrongly: into "from B to A" or "to A from B"."""
    match = re.search(rf"\bfrom ({NAME}|\w+) (to|into) ({NAME}|\w+)", text)
    if not match or match[3] in FUNCTION_WORDS:
        return None
    first, word, second = match.groups()
    new = f"{word} {second} from {first}"
    if wrong:
        new = draws.pick([f"from {second} {word} {first}", f"{word} {first} from {second}"])
    return replaced(text, match, new)


def twice_negated(text: str, draws: Draws, wrong: bool = False) -> str | None:
    """Turn "is not legal" into "is illegal", or "is legal" into "is not illegal"; wrongly: leave out the negation."""
    pairs = {a: b for line in read_rewordings()["opposites"] for a, b in (line, line[::-1])}
    words = "|".join(pairs)
    found = re.finditer(rf"\b(is|are|was|were) (not |)({words})\b(?! \w*(?:is|ed|s)\b)", text, re.IGNORECASE)

    def turned(match: Match) -> str:
        negated = bool(match[2]) != wrong
        return f"{match[1]} {'' if negated else 'not '}{pairs[match[3].lower()]}"

    return replaced_once(text, draws, found, turned)


def without_that(text: str, draws: Draws) -> str | None:
    """Leave out "that" after a verb of saying or thinking."""
    match = re.search(
        r"\b(said|says|say|think|thinks|thought|believe|believes|believed|know|knew|sure|true) that (?=\w)", text
    )
    return match and replaced(text, match, f"{match[1]} ")


def typo(text: str, draws: Draws) -> str | None:
    """Exchange two letters inside a long word."""

    def mistyped(match: Match) -> str:
        word = match[0]
        i = 1 + draws.below(len(word) - 3)
        return word[:i] + word[i + 1] + word[i] + word[i + 2 :]

    return replaced_once(text, draws, re.finditer(r"\b[a-z]{6,}\b", text), mistyped)


def written(text: str, draws: Draws) -> str | None:
    """Write a number in another way: 5000 and 5,000, "5 mg" and "5mg"."""
    if match := re.search(r"(?<![\w.,])(\d{1,3}),(\d{3})(?![\w,])", text):
        return replaced(text, match, match[1] + match[2])
    if match := re.search(r"(?<![\w.,:/-])(\d{1,3})(\d{3})(?= [a-z])", text):
        is_year = 1500 < int(match[0]) < 2100
        return None if is_year else replaced(text, match, f"{match[1]},{match[2]}")
    match = re.search(r"\b(\d+) (mg|kg|km|cm|mm|gb|am|pm|ml|m|g)\b", text, re.IGNORECASE)
    return match and replaced(text, match, match[1] + match[2])


def asked_passive(text: str, draws: Draws, wrong: bool = False) -> str | None:
    """Turn "Did A follow B?" into "Was B followed by A?"; wrongly: into "Was A followed by B?" or "Did B follow A?"."""
    match = re.match(rf"Did ((?:the |my )?(?:{NAME}|\w+)) ([a-z]+[^aeiouy\W]|[a-z]+e) ({NOUN}){END}", text)
    if not match or match[2] in IRREGULAR or match[3].split()[-1].lower() in FUNCTION_WORDS:
        return None
    who, verb, what, end = match.groups()
    done = verb + ("d" if verb.endswith("e") else "ed")
    if wrong:
        return draws.pick([f"Did {what} {verb} {who}{end}", f"Was {who} {done} by {what}{end}"])
    return f"Was {what} {done} by {who}{end}"


IRREGULAR = frozenset(
    """
beat begin bend bind bite bleed blow break bring build burst buy catch choose come cost cut deal dig draw drink
drive eat fall feed feel fight find fly forget get give go grow have hear hide hit hold hurt keep know lead learn
leave lend let lose make mean meet overtake pay put quit read ride ring rise run see seek sell send set shoot sing
sit sleep speak spend spread stand steal stick strike swear swim take teach tear tell think throw understand wear
win write
""".split()
)


@lru_cache(1)
def harmless_changes() -> dict[str, Change]:
    """Return the changes that keep the meaning, by name."""
    lists = read_rewordings()
    return {
        "opening": Exchange(lists["openings"], at_start=True),
        "phrase": Exchange(lists["phrases"]),
        "filler": filler,
        "article": article,
        "marks": marks,
        "coordinated": coordinated,
        "fronted": fronted,
        "time order": time_order,
        "passive": passive,
        "active": active,
        "asked": asked_passive,
        "compared": compared,
        "symmetric": symmetric,
        "from to": from_to,
        "twice negated": twice_negated,
        "typo": typo,
        "genitive": genitive,
        "that": without_that,
        "written": written,
    }


@lru_cache(1)
def harmful_changes() -> dict[str, Change]:
    """Return the changes that a harmless one resembles, but that change the meaning, by name."""
    lists = read_rewordings()
    wrongly = {"time order": time_order, "passive": passive, "active": active, "asked": asked_passive}
    wrongly |= {"compared": compared, "from to": from_to, "twice negated": twice_negated}
    changes: dict[str, Change] = {name: partial(change, wrong=True) for name, change in wrongly.items()}
    exchanged = {name: Exchange(lists[f"{name}s"]) for name in ("person", "tense")}
    return {"contrast": Exchange(lists["contrasts"]), **changes, **exchanged}


# no verifier trains on these changes, so that they can judge one
JUDGING = frozenset(("genitive", "that", "written", "person", "tense"))


def exchanged_word(wordnet: WordNet, others: Mapping[str, Sequence[str]]) -> Change:
    """Return the change that replaces one content word with one of its `others`, in the same regular form.

    others: by lemma, such as `WordNet.synonyms` or `WordNet.opposites`.
    """

    def change(text: str, draws: Draws) -> str | None:
        found = [
            match
            for match in re.finditer(r"(?<![\w'-])[a-z]{3,}(?![\w'-])", text)
            if match[0] not in FUNCTION_WORDS and others.get(wordnet.lemma(match[0])[0])
        ]

        def other(match: Match) -> str:
            lemma, ending = wordnet.lemma(match[0])
            return inflected(draws.pick(others[lemma]), ending)

        return replaced_once(text, draws, found, other)

    return change
