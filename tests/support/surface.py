"""surface="kept" in plain Python, without una_fast: a sentence keeps its text, except for replaced words."""

import re
import unicodedata

QUOTES = {"``": ('"', "''", "``"), "''": ('"', "''")}  # for NLTK's two quotation marks, the possible forms in a text
SCRIPTS = re.compile(  # scripts without spaces between words
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u3040-\u30ff\u31f0-\u31ff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
)


def write_kept(text, words, new, lowercase=True, tokenizer="treebank"):
    """Replace word k of `text`, one of `words`, by ``new[k]``, unless that is None."""
    quotes, marks = QUOTES if tokenizer == "treebank" else {}, "¿¡" if isinstance(tokenizer, str) else ""
    written, end, last_is_new, word = "", 0, False, ""
    for (start, stop), drawn in zip(word_spans(text, words, lowercase), new, strict=True):
        gap, before, word = text[end:start], word, text[start:stop]
        if drawn is not None:
            rest = word.lstrip("¿¡")
            spelled = '"' if drawn in quotes else drawn.lstrip(marks) or drawn
            word = (word[: len(word) - len(rest)] if rest else "") + in_case(spelled, word)
        if not gap and (drawn is not None or last_is_new) and runs_together(before, word):
            gap = " "
        written += gap + word
        end, last_is_new = stop, drawn is not None
    return written + text[end:] if words else ""


def runs_together(word, following):
    """Whether two words without a space between them would look like one word."""
    return bool(word and following) and not (stands_apart(word[-1]) or stands_apart(following[0]))


def stands_apart(character):
    punctuation = unicodedata.category(character).startswith("P")
    return punctuation or ("!" <= character <= "~" and not character.isalnum()) or bool(SCRIPTS.match(character))


def word_spans(text, words, lowercase=True):
    """Return (start, stop) of each word in `text`, in characters."""
    searched = "".join(text.lower() if lowercase else text)
    sizes = [len(character.lower()) if lowercase else 1 for character in text]  # "İ" is two characters in lower case
    places = [i for i, size in enumerate(sizes) for _ in range(size)]
    spans, end = [], 0
    for word in words:
        found = [(searched.find(form, end), form) for form in QUOTES.get(word, (word,))]
        start, form = min((start, form) for start, form in found if start >= 0)
        end = start + len(form)
        before = spans[-1][1] if spans else 0  # one character can belong to two words
        spans.append((max(places[start], before), places[end - 1] + 1))
    return spans


def in_case(word, model):
    """Give `word` the capitalisation of `model`."""
    cased = [character for character in model if character.lower() != character.upper()]
    if len(cased) > 1 and model.isupper():
        return word.upper()
    return word[:1].upper() + word[1:].lower() if cased and cased[0].isupper() else word
