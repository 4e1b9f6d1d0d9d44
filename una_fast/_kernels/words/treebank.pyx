"""NLTK's word tokenizer (Treebank rules), rule by rule, on code points and without the GIL.

`apply_treebank` rewrites a text with the substitutions of nltk.tokenize.destructive, in their order, so that the words
are the result of str.split. A comment at the top of each rule states its regular expression and replacement. NLTK
compiles most rules with the `regex` package and the contractions with Python's `re`, which have different character
classes. Here all classes are those of the running Python's Unicode version.
"""

import re
import unicodedata

import numpy as np

from cpython.unicode cimport PyUnicode_4BYTE_KIND, PyUnicode_FromKindAndData

from una_fast._kernels.utf8 cimport character, length

cdef extern from "Python.h" nogil:
    bint Py_UNICODE_ISALNUM(Py_UCS4 c)
    bint Py_UNICODE_ISALPHA(Py_UCS4 c)
    bint Py_UNICODE_ISDECIMAL(Py_UCS4 c)

cdef enum:
    CLOSERS = CLOSING_BRACKET | DOUBLE_QUOTE | APOSTROPHE  # [\]\)}>"\']
    ALL_CLOSERS = CLOSERS | CLOSING_QUOTE | SPACE          # [\]\)}>"'»”’ ]

# A rule is called at a character that every match contains, after all text before this character was written. It writes
# the replacement and returns the position after the match, or 0 if nothing matches.
ctypedef Py_ssize_t (*Rule)(Rewriter text, Py_ssize_t i, int a) except -1 nogil

cdef (const char*)[8] CLITICS = ["re", "ve", "ll", "m", "t", "s", "d", "n"]
cdef (const char*)[15] ENDINGS = ["'s", "'S", "'m", "'M", "'d", "'D", "'",
                                  "'ll", "'LL", "'re", "'RE", "'ve", "'VE", "n't", "N'T"]
cdef (const char*)[10] HEADS = ["can", "d", "gim", "gon", "got", "lem", "more", "wan", "'t", "'t"]
cdef (const char*)[10] TAILS = ["not", "'ye", "me", "na", "ta", "me", "'n", "na", "is", "was"]


def _kinds():
    kinds = np.zeros(LAST_KIND + 1, dtype=np.uint16)
    members = {
        APOSTROPHE: "'", DOUBLE_QUOTE: '"', BACKTICK: "`", OPENING_QUOTE: "«“‘„", CLOSING_QUOTE: "»”’", DOT: ".",
        COMMA_COLON: ":,", SYMBOL_DASH: ";@#$%&\u2012\u2013\u2014\u2015", QUERY: "?!", STAR: "*",
        OPENING_BRACKET: "([{<", CLOSING_BRACKET: ")]}>", HYPHEN: "-", SPACE: " ", CONTRACTED: "cdglmwCDGLMW",
        LETTER_N: "nN",
    }
    for bit, characters in members.items():
        kinds[[ord(c) for c in characters]] = bit
    return kinds


KINDS = _kinds()
FRAMED = re.compile("(NEGATIVE )?(CIRCLED|SQUARED) LATIN CAPITAL LETTER .|CIRCLED LATIN SMALL LETTER .")


def is_word_beyond_letters(str c):
    """Return whether \\w of `regex` matches `c`, which must be neither a letter nor a digit. "_" and "Ⅳ" match."""
    return (unicodedata.category(c) in ("Mn", "Mc", "Me", "Nl", "Pc") or c in "\u200c\u200d"
            or FRAMED.fullmatch(unicodedata.name(c, "")) is not None)


cdef int regex_word(Py_UCS4 c) except -1 nogil:
    if Py_UNICODE_ISALPHA(c) or Py_UNICODE_ISDECIMAL(c):
        return 1
    if c < 128:
        return c == c'_'
    with gil:
        return is_word_beyond_letters(chr(c))


cdef int regex_space(Py_UCS4 c) except -1 nogil:
    return Py_UNICODE_ISSPACE(c) and not 0x1c <= c <= 0x1f


cdef class Rewriter:
    def __cinit__(self, Py_ssize_t capacity):
        self.buffers, self.kinds = np.empty((2, capacity), dtype=np.uint32), KINDS


cdef int substitute(Rewriter text, uint32_t kinds, Rule rule, int a=0) except -1 nogil:
    """Apply ``rule(text, i, a)`` at each character i whose kind is in `kinds`. The output becomes the text."""
    cdef Py_ssize_t i = 0, stop
    if not text.has & kinds:
        return 0
    while i < text.length:
        stop = rule(text, i, a) if kind(text, i) & kinds else 0
        if stop:
            i = stop
        else:
            put(text, at(text, i))
            i += 1
    return flip(text)


def treebank_words(str line):
    """Split any str into words. Returns list[str]."""
    cdef Rewriter text = Rewriter(GROWTH * len(line) + EXTRA)
    cdef Py_UCS4 c
    for c in line:
        put(text, c)
    flip(text)
    apply_treebank(text)
    return PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, &text.buffers[text.current, 0], text.length).split()


cdef int apply_treebank(Rewriter text) except -1 nogil:
    """Rewrite `text` with all rules in NLTK's order. A text of n code points needs a Rewriter(GROWTH * n + EXTRA).

    Consecutive rules that only put spaces around characters share one pass over the text.
    """
    cdef Py_ssize_t i
    text.has = 0
    for i in range(text.length):
        text.has |= kind(text, i)
    if text.has & DOUBLE_QUOTE:
        text.has |= BACKTICK  # which `first_double_quote` writes
    # STARTING_QUOTES
    substitute(text, OPENING_QUOTE, pad)
    substitute(text, BACKTICK, pad_run, 1)
    substitute(text, DOUBLE_QUOTE, first_double_quote)
    substitute(text, BACKTICK, pad_pair)
    substitute(text, DOUBLE_QUOTE | APOSTROPHE, opening_double_quote)
    substitute(text, APOSTROPHE, opening_single_quote)
    # PUNCTUATION, PARENS_BRACKETS, DOUBLE_DASHES
    substitute(text, DOT, final_period, ALL_CLOSERS)
    substitute(text, COMMA_COLON, comma)
    substitute(text, COMMA_COLON, last_comma)
    substitute(text, DOT, pad_run, 2)
    substitute(text, SYMBOL_DASH, pad)
    substitute(text, DOT, final_period, CLOSERS)
    substitute(text, QUERY, pad)
    substitute(text, APOSTROPHE, closing_single_quote)
    substitute(text, STAR | OPENING_BRACKET | CLOSING_BRACKET, pad)
    substitute(text, HYPHEN, pad_pair)
    put_padded(text, 0, text.length)
    flip(text)
    # ENDING_QUOTES
    substitute(text, CLOSING_QUOTE, pad)
    substitute(text, APOSTROPHE, pad_pair)
    substitute(text, DOUBLE_QUOTE, closing_double_quote)
    collapse_spaces(text)
    substitute(text, APOSTROPHE, ending, 0)
    if text.has & APOSTROPHE:
        substitute(text, APOSTROPHE | LETTER_N, ending, 7)
    # CONTRACTIONS2, CONTRACTIONS3
    substitute(text, CONTRACTED, contraction)
    substitute(text, APOSTROPHE, contraction_of_it, 8)
    substitute(text, APOSTROPHE, contraction_of_it, 9)
    return 0


cdef inline int copy(Rewriter text, Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
    """Write text[start:stop] unchanged."""
    cdef Py_ssize_t i
    for i in range(start, stop):
        put(text, at(text, i))
    return 0


cdef Py_ssize_t put_padded(Rewriter text, Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
    """Write text[start:stop] with a space on either side. Return `stop`."""
    put(text, c' ')
    copy(text, start, stop)
    put(text, c' ')
    return stop


cdef Py_ssize_t pad(Rewriter text, Py_ssize_t i, int _) except -1 nogil:
    # [...] -> " \g<0> "
    return put_padded(text, i, i + 1)


cdef Py_ssize_t pad_run(Rewriter text, Py_ssize_t i, int least) except -1 nogil:
    # c{least,} -> " \g<0> "
    cdef Py_ssize_t stop = i + 1
    while holds(text, stop, at(text, i)):
        stop += 1
    return put_padded(text, i, stop) if stop - i >= least else 0


cdef Py_ssize_t pad_pair(Rewriter text, Py_ssize_t i, int _) except -1 nogil:
    # cc -> " \g<0> "
    return put_padded(text, i, i + 2) if holds(text, i + 1, at(text, i)) else 0


cdef Py_ssize_t put_pair(Rewriter text, uint32_t c, Py_ssize_t stop) except -1 nogil:
    """Write a space, `c` twice, and a space. Return `stop`."""
    put(text, c' ')
    put(text, c)
    put(text, c)
    put(text, c' ')
    return stop


cdef Py_ssize_t first_double_quote(Rewriter text, Py_ssize_t i, int _) except -1 nogil:
    # ^\" -> "``"
    if i:
        return 0
    put(text, c'`')
    put(text, c'`')
    return 1


cdef Py_ssize_t opening_double_quote(Rewriter text, Py_ssize_t i, int _) except -1 nogil:
    # ([ \(\[{<])(\"|\'{2}) -> "\1 `` "
    cdef Py_ssize_t stop = i + 1 if at(text, i) == c'"' else i + 2 if holds(text, i + 1, c"'") else 0
    return put_pair(text, c'`', stop) if stop and i and kind(text, i - 1) & (OPENING_BRACKET | SPACE) else 0


cdef Py_ssize_t opening_single_quote(Rewriter text, Py_ssize_t i, int _) except -1 nogil:
    # (?i)(?<!\w)(\')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w) -> "\1 "
    if i + 1 == text.length or not regex_word(at(text, i + 1)) or (i and regex_word(at(text, i - 1))):
        return 0
    cdef Py_ssize_t stop
    cdef const char* letters
    for letters in CLITICS:
        stop = after(text, i + 1, letters)
        if stop and not (stop < text.length and regex_word(at(text, stop))):
            return 0
    put(text, c"'")
    put(text, c' ')
    return i + 1


cdef inline uint32_t fold(uint32_t c) noexcept nogil:
    """Return the lower-case ASCII letter that matches `c` under IGNORECASE of `re` and `regex`; without one, `c`."""
    if c'A' <= c <= c'Z':
        return c + 32
    if c == 0x130 or c == 0x131:  # İ and ı
        return c'i'
    return c's' if c == 0x17f else c  # ſ


cdef Py_ssize_t after(Rewriter text, Py_ssize_t i, const char* letters) except -1 nogil:
    """Return the position after the lower-case `letters` if the lower-cased text has them at `i`, else 0."""
    while letters[0]:
        if i >= text.length or fold(at(text, i)) != <unsigned char>letters[0]:
            return 0
        i += 1
        letters += 1
    return i


cdef Py_ssize_t final_period(Rewriter text, Py_ssize_t i, int closers) except -1 nogil:
    # ([^\.])(\.)([closers]*+)\s*$ -> "\1 \2 \3 " for ALL_CLOSERS, else "\1 \2\3 "
    cdef Py_ssize_t end = i + 1, stop
    while end < text.length and kind(text, end) & closers:
        end += 1
    stop = end
    while stop < text.length and regex_space(at(text, stop)):
        stop += 1
    if stop < text.length or i == 0 or at(text, i - 1) == c'.':
        return 0
    put(text, c' ')
    put(text, c'.')
    if closers == ALL_CLOSERS:
        put(text, c' ')
    copy(text, i + 1, end)
    put(text, c' ')
    return stop


cdef Py_ssize_t comma(Rewriter text, Py_ssize_t i, int _) except -1 nogil:
    # ([:,])([^\d]) -> " \1 \2"
    if i + 1 == text.length or Py_UNICODE_ISDECIMAL(at(text, i + 1)):
        return 0
    put_padded(text, i, i + 1)
    put(text, at(text, i + 1))
    return i + 2


cdef Py_ssize_t last_comma(Rewriter text, Py_ssize_t i, int _) except -1 nogil:
    # ([:,])$ -> " \1 ", where $ also matches before a newline that ends the text
    return pad(text, i, 0) if i + 1 + holds(text, i + 1, c'\n') == text.length else 0


cdef Py_ssize_t closing_single_quote(Rewriter text, Py_ssize_t i, int _) except -1 nogil:
    # ([^'])'_ -> "\1 '_", where _ is a space. In "' ' " the second quote is replaced too, which doubles its space.
    return pad(text, i, 0) + 1 if i and at(text, i - 1) != c"'" and holds(text, i + 1, c' ') else 0


cdef Py_ssize_t closing_double_quote(Rewriter text, Py_ssize_t i, int _) except -1 nogil:
    # \" -> " '' "
    return put_pair(text, c"'", i + 1)


cdef int collapse_spaces(Rewriter text) except -1 nogil:
    # \s+ -> " "
    cdef Py_ssize_t i
    cdef bint inside = False, space
    for i in range(text.length):
        space = regex_space(at(text, i))
        if not (space and inside):
            put(text, c' ' if space else at(text, i))
        inside = space
    return flip(text)


cdef Py_ssize_t ending(Rewriter text, Py_ssize_t i, int first) except -1 nogil:
    # ([^' ])('[sS]|'[mM]|'[dD]|')_ and ([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T)_ -> "\1 \2_", where _ is a space
    cdef Py_ssize_t n
    cdef int k
    for k in range(first, 15 if first else 7):
        n = 0
        while ENDINGS[k][n] and holds(text, i + n, ENDINGS[k][n]):
            n += 1
        if not ENDINGS[k][n] and holds(text, i + n, c' ') and i and not kind(text, i - 1) & (APOSTROPHE | SPACE):
            put(text, c' ')
            copy(text, i, i + n + 1)
            return i + n + 1
    return 0


cdef Py_ssize_t contraction(Rewriter text, Py_ssize_t i, int _) except -1 nogil:
    # (?i)\b(head)(tail)\b -> " \1 \2 " for the first eight pairs; the last of them ends with (?=\s) instead of \b
    # One pass applies all eight rules: a match has word boundaries on both sides, so no two matches overlap, and the
    # spaces that a rule adds move no word boundary.
    cdef Py_ssize_t middle, stop
    cdef int k
    if word_at(text, i - 1):
        return 0
    for k in range(8):
        middle = after(text, i, HEADS[k])
        stop = after(text, middle, TAILS[k]) if middle else 0
        if stop and not word_at(text, stop) and (k < 7 or stop < text.length and Py_UNICODE_ISSPACE(at(text, stop))):
            return put_halves(text, i, middle, stop)
    return 0


cdef Py_ssize_t contraction_of_it(Rewriter text, Py_ssize_t i, int k) except -1 nogil:
    # (?i) ('t)(tail)\b -> " \1 \2 "; the space before it is kept
    cdef Py_ssize_t middle = after(text, i, HEADS[k]), stop = after(text, middle, TAILS[k]) if middle else 0
    return put_halves(text, i, middle, stop) if stop and at(text, i - 1) == c' ' and not word_at(text, stop) else 0


cdef bint word_at(Rewriter text, Py_ssize_t i) except? -1 nogil:
    """Return whether character `i` of the text exists and matches \\w of Python's `re`."""
    return 0 <= i < text.length and (Py_UNICODE_ISALNUM(at(text, i)) or at(text, i) == c'_')


cdef Py_ssize_t put_halves(Rewriter text, Py_ssize_t start, Py_ssize_t middle, Py_ssize_t stop) except -1 nogil:
    """Write text[start:middle] and text[middle:stop] with spaces around each. Return `stop`."""
    put_padded(text, start, middle)
    copy(text, middle, stop)
    put(text, c' ')
    return stop


cdef int put_utf8(Rewriter text, const unsigned char[::1] utf8, Py_ssize_t start, Py_ssize_t stop) except -1 nogil:
    while start < stop:
        put(text, character(&utf8[start]))
        start += length(&utf8[start])
    return 0


cdef Py_ssize_t write_utf8(uint32_t c, unsigned char[::1] out, Py_ssize_t i) except -1 nogil:
    """Write the code point `c` to `out`, from out[i] on, and return the position after its last byte."""
    cdef int shift = 0 if c < 0x80 else 6 if c < 0x800 else 12 if c < 0x10000 else 18
    out[i] = c >> shift | (0 if shift == 0 else 0xc0 if shift == 6 else 0xe0 if shift == 12 else 0xf0)
    while shift:
        i += 1
        shift -= 6
        out[i] = 0x80 | (c >> shift & 0x3f)
    return i + 1
