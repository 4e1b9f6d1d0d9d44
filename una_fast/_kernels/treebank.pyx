"""NLTK's word tokenizer (Treebank rules), rule by rule, on code points and without the GIL.

`apply_treebank` rewrites a text as the substitutions of nltk.tokenize.destructive do, in their order; the words are
what str.split then finds. Each rule stands under the regular expression it equals.
"""

import numpy as np

from cpython.unicode cimport PyUnicode_4BYTE_KIND, PyUnicode_FromKindAndData

from una_fast._kernels.characters cimport python_space, python_word, regex_digit, regex_space, regex_word
from una_fast._kernels.rewriter cimport Rewriter, at, copy, flip, put, put_spaced

cdef enum:
    APOSTROPHE = 1
    DOUBLE_QUOTE = 2
    BACKTICK = 4
    OPENING_QUOTE = 8
    CLOSING_QUOTE = 16
    DOT = 32
    COMMA_COLON = 64
    SYMBOL_DASH = 128
    QUERY = 256
    STAR = 512
    OPENING_BRACKET = 1024
    CLOSING_BRACKET = 2048
    HYPHEN = 4096
    SPACE = 8192
    CLOSERS = CLOSING_BRACKET | DOUBLE_QUOTE | APOSTROPHE | CLOSING_QUOTE | SPACE
    LAST_KIND = 0x201e  # no rule names a character above
    UNLIMITED = 2147483647


def _kinds():
    kinds = np.zeros(LAST_KIND + 1, dtype=np.uint16)
    members = {
        APOSTROPHE: "'", DOUBLE_QUOTE: '"', BACKTICK: "`", OPENING_QUOTE: "«“‘„", CLOSING_QUOTE: "»”’", DOT: ".",
        COMMA_COLON: ":,", SYMBOL_DASH: ";@#$%&\u2012\u2013\u2014\u2015", QUERY: "?!", STAR: "*",
        OPENING_BRACKET: "([{<", CLOSING_BRACKET: ")]}>", HYPHEN: "-", SPACE: " ",
    }
    for kind, characters in members.items():
        kinds[[ord(c) for c in characters]] = kind
    return kinds


cdef const unsigned short[::1] KINDS = _kinds()
cdef (const char*)[8] CLITICS = ["re", "ve", "ll", "m", "t", "s", "d", "n"]
cdef (const char*)[15] ENDINGS = ["'s", "'S", "'m", "'M", "'d", "'D", "'", "'ll", "'LL", "'re", "'RE", "'ve", "'VE",
                                  "n't", "N'T"]
cdef (const char*)[8] HEADS = ["can", "d", "gim", "gon", "got", "lem", "more", "wan"]
cdef (const char*)[8] TAILS = ["not", "'ye", "me", "na", "ta", "me", "'n", "na"]


cdef inline unsigned int kind(Rewriter text, Py_ssize_t i) except? 0xffffffff nogil:
    cdef unsigned int c = at(text, i)
    return KINDS[c] if c <= LAST_KIND else 0


cdef inline bint holds(Rewriter text, Py_ssize_t i, unsigned int c) except? -1 nogil:
    """Whether there is a character `i` and it is `c`."""
    return i < text.length and at(text, i) == c


cdef int pad(Rewriter text, unsigned int kinds) except -1 nogil:
    # [...] -> " \g<0> "
    cdef Py_ssize_t i
    for i in range(text.length):
        if kind(text, i) & kinds:
            put_spaced(text, at(text, i))
        else:
            put(text, at(text, i))
    return flip(text)


cdef int pad_repeats(Rewriter text, unsigned int c, Py_ssize_t least, Py_ssize_t most) except -1 nogil:
    # c{least,most} -> " \g<0> "
    cdef Py_ssize_t i = 0, stop
    while i < text.length:
        stop = i
        while stop - i < most and holds(text, stop, c):
            stop += 1
        if stop - i >= least:
            put(text, c' ')
            copy(text, i, stop)
            put(text, c' ')
            i = stop
        else:
            put(text, at(text, i))
            i += 1
    return flip(text)


cdef int first_double_quote(Rewriter text) except -1 nogil:
    # ^\" -> "``"
    if not holds(text, 0, c'"'):
        return 0
    put(text, c'`')
    put(text, c'`')
    copy(text, 1, text.length)
    return flip(text)


cdef int opening_double_quotes(Rewriter text) except -1 nogil:
    # ([ \(\[{<])(\"|\'{2}) -> "\1 `` "
    cdef Py_ssize_t i = 0, stop
    while i < text.length:
        stop = i + 1
        if kind(text, i) & (OPENING_BRACKET | SPACE):
            if holds(text, i + 1, c'"'):
                stop = i + 2
            elif holds(text, i + 1, c"'") and holds(text, i + 2, c"'"):
                stop = i + 3
        put(text, at(text, i))
        if stop > i + 1:
            put(text, c' ')
            put(text, c'`')
            put(text, c'`')
            put(text, c' ')
        i = stop
    return flip(text)


cdef inline unsigned int fold(unsigned int c) noexcept nogil:
    """The ASCII letter that `c` equals under (?i), in `re` and in `regex`; other characters as they are."""
    if c'A' <= c <= c'Z':
        return c + 32
    if c == 0x130 or c == 0x131:
        return c'i'
    return c's' if c == 0x17f else c


cdef Py_ssize_t after(Rewriter text, Py_ssize_t i, const char* letters) except -1 nogil:
    """Where `letters` end if they stand at `i`, in either case; else 0."""
    while letters[0]:
        if i >= text.length or fold(at(text, i)) != <unsigned char>letters[0]:
            return 0
        i += 1
        letters += 1
    return i


cdef bint is_clitic(Rewriter text, Py_ssize_t i) except? -1 nogil:
    # (?i)(?:re|ve|ll|m|t|s|d|n)\b
    cdef Py_ssize_t stop = 0
    cdef const char* letters
    for letters in CLITICS:
        stop = after(text, i, letters)
        if stop and not (stop < text.length and regex_word(at(text, stop))):
            return True
    return False


cdef int opening_single_quotes(Rewriter text) except -1 nogil:
    # (?i)(?<!\w)(\')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w) -> "\1 "
    cdef Py_ssize_t i
    for i in range(text.length):
        put(text, at(text, i))
        if at(text, i) == c"'" and i + 1 < text.length and regex_word(at(text, i + 1)):
            if not (i > 0 and regex_word(at(text, i - 1))) and not is_clitic(text, i + 1):
                put(text, c' ')
    return flip(text)


cdef int is_closing(unsigned int c) except -1 nogil:
    """Whether the final-period rules look through `c`."""
    return c <= LAST_KIND and KINDS[c] & CLOSERS or regex_space(c)


cdef int final_period(Rewriter text, unsigned int closers, bint spaced) except -1 nogil:
    # ([^\.])(\.)([closers]*+)\s*$ -> "\1 \2 \3 " if spaced, else "\1 \2\3 "
    # What follows the period holds no other, so it can only be the last one of the text.
    cdef Py_ssize_t period = text.length, stop
    while period > 0 and regex_space(at(text, period - 1)):
        period -= 1
    while period > 0 and kind(text, period - 1) & closers:
        period -= 1
    period -= 1
    if period < 1 or at(text, period) != c'.' or at(text, period - 1) == c'.':
        return 0
    copy(text, 0, period)
    put(text, c' ')
    put(text, c'.')
    if spaced:
        put(text, c' ')
    stop = period + 1
    while stop < text.length and kind(text, stop) & closers:
        put(text, at(text, stop))
        stop += 1
    put(text, c' ')
    return flip(text)


cdef int commas(Rewriter text) except -1 nogil:
    # ([:,])([^\d]) -> " \1 \2"
    cdef Py_ssize_t i = 0
    while i < text.length:
        if kind(text, i) & COMMA_COLON and i + 1 < text.length and not regex_digit(at(text, i + 1)):
            put_spaced(text, at(text, i))
            i += 1
        put(text, at(text, i))
        i += 1
    return flip(text)


cdef int last_comma(Rewriter text) except -1 nogil:
    # ([:,])$ -> " \1 ", where $ also stands before a newline that ends the text
    cdef Py_ssize_t i = text.length - 1
    if i > 0 and at(text, i) == c'\n':
        i -= 1
    if i < 0 or not kind(text, i) & COMMA_COLON:
        return 0
    copy(text, 0, i)
    put_spaced(text, at(text, i))
    copy(text, i + 1, text.length)
    return flip(text)


cdef int closing_single_quotes(Rewriter text) except -1 nogil:
    # ([^'])' -> "\1 ' ", with a space at the end of both
    cdef Py_ssize_t i = 0
    while i < text.length:
        put(text, at(text, i))
        if at(text, i) != c"'" and holds(text, i + 1, c"'") and holds(text, i + 2, c' '):
            put_spaced(text, c"'")
            i += 2
        i += 1
    return flip(text)


cdef int collapse_spaces(Rewriter text) except -1 nogil:
    # \s+ -> " "
    cdef Py_ssize_t i
    cdef bint inside = False
    for i in range(text.length):
        if not regex_space(at(text, i)):
            put(text, at(text, i))
            inside = False
        elif not inside:
            put(text, c' ')
            inside = True
    return flip(text)


cdef int clitic_length(Rewriter text, Py_ssize_t i, bint long) except -1 nogil:
    # '[sS]|'[mM]|'[dD]|' or, if long, 'll|'LL|'re|'RE|'ve|'VE|n't|N'T; 0 if none stands at i before a space
    cdef const char* clitic
    cdef int j, k
    for k in range(7 if long else 0, 15 if long else 7):
        clitic = ENDINGS[k]
        j = 0
        while clitic[j] and holds(text, i + j, clitic[j]):
            j += 1
        if not clitic[j] and holds(text, i + j, c' '):
            return j
    return 0


cdef int split_clitics(Rewriter text, bint long) except -1 nogil:
    # ([^' ])(clitic) -> "\1 \2 ", with a space at the end of both
    cdef Py_ssize_t i = 0
    cdef int n
    while i < text.length:
        put(text, at(text, i))
        n = 0 if kind(text, i) & (APOSTROPHE | SPACE) else clitic_length(text, i + 1, long)
        if n:
            put(text, c' ')
            copy(text, i + 1, i + 2 + n)
            i += n + 1
        i += 1
    return flip(text)


cdef int put_halves(Rewriter text, Py_ssize_t start, Py_ssize_t middle, Py_ssize_t stop) except -1 nogil:
    # " \1 \2 "
    put(text, c' ')
    copy(text, start, middle)
    put(text, c' ')
    copy(text, middle, stop)
    put(text, c' ')
    return 0


cdef bint word_at(Rewriter text, Py_ssize_t i) except? -1 nogil:
    """Whether there is a character `i` and it is \\w of `re`."""
    return 0 <= i < text.length and python_word(at(text, i))


cdef int contractions(Rewriter text) except -1 nogil:
    # (?i)\b(head)(tail)\b -> " \1 \2 ", eight times, of which the last ends in (?=\s) in place of \b
    # One pass does for all: each match is cut off by boundaries on both sides, so no two share a character.
    cdef Py_ssize_t i = 0, middle, stop
    cdef int pattern
    while i < text.length:
        for pattern in range(8):
            middle = after(text, i, HEADS[pattern])
            stop = after(text, middle, TAILS[pattern]) if middle else 0
            if not stop or word_at(text, i - 1) or word_at(text, stop):
                continue
            if pattern < 7 or (stop < text.length and python_space(at(text, stop))):
                put_halves(text, i, middle, stop)
                i = stop
                break
        else:
            put(text, at(text, i))
            i += 1
    return flip(text)


cdef int contractions_of_it(Rewriter text, const char* tail) except -1 nogil:
    # (?i) ('t)(tail)\b -> " \1 \2 "
    cdef Py_ssize_t i = 0, middle, stop
    while i < text.length:
        middle = after(text, i, b" 't")
        stop = after(text, middle, tail) if middle else 0
        if stop and not word_at(text, stop):
            put_halves(text, i + 1, middle, stop)
            i = stop
        else:
            put(text, at(text, i))
            i += 1
    return flip(text)


cdef int starting_quotes(Rewriter text, unsigned int present) except -1 nogil:
    if present & OPENING_QUOTE:
        pad(text, OPENING_QUOTE)
    if present & BACKTICK:
        pad_repeats(text, c'`', 1, UNLIMITED)
    if present & DOUBLE_QUOTE:
        first_double_quote(text)
    if present & (BACKTICK | DOUBLE_QUOTE):
        pad_repeats(text, c'`', 2, 2)
    if present & (DOUBLE_QUOTE | APOSTROPHE):
        opening_double_quotes(text)
    if present & APOSTROPHE:
        opening_single_quotes(text)
    return 0


cdef int punctuation(Rewriter text, unsigned int present) except -1 nogil:
    if present & DOT:
        final_period(text, CLOSERS, True)
    if present & COMMA_COLON:
        commas(text)
        last_comma(text)
    if present & DOT:
        pad_repeats(text, c'.', 2, UNLIMITED)
    if present & SYMBOL_DASH:
        pad(text, SYMBOL_DASH)
    if present & DOT:
        final_period(text, CLOSING_BRACKET | DOUBLE_QUOTE | APOSTROPHE, False)
    if present & QUERY:
        pad(text, QUERY)
    if present & APOSTROPHE:
        closing_single_quotes(text)
    if present & (STAR | OPENING_BRACKET | CLOSING_BRACKET):
        pad(text, STAR | OPENING_BRACKET | CLOSING_BRACKET)
    if present & HYPHEN:
        pad_repeats(text, c'-', 2, 2)
    return 0


cdef int surround(Rewriter text) except -1 nogil:
    put(text, c' ')
    copy(text, 0, text.length)
    put(text, c' ')
    return flip(text)


cdef int closing_double_quotes(Rewriter text) except -1 nogil:
    # \" -> " '' "
    cdef Py_ssize_t i
    for i in range(text.length):
        if at(text, i) == c'"':
            put(text, c' ')
            put(text, c"'")
            put(text, c"'")
            put(text, c' ')
        else:
            put(text, at(text, i))
    return flip(text)


cdef int ending_quotes(Rewriter text, unsigned int present) except -1 nogil:
    if present & CLOSING_QUOTE:
        pad(text, CLOSING_QUOTE)
    if present & APOSTROPHE:
        pad_repeats(text, c"'", 2, 2)
    if present & DOUBLE_QUOTE:
        closing_double_quotes(text)
    collapse_spaces(text)
    if present & APOSTROPHE:
        split_clitics(text, False)
        split_clitics(text, True)
    return 0


cdef int apply_treebank(Rewriter text) except -1 nogil:
    """Rewrite `text`, of n characters and room for GROWTH * n + EXTRA. A rule without its characters is skipped."""
    cdef unsigned int present = 0
    cdef Py_ssize_t i
    for i in range(text.length):
        present |= kind(text, i)
    starting_quotes(text, present)
    punctuation(text, present)
    surround(text)
    ending_quotes(text, present)
    contractions(text)
    if present & APOSTROPHE:
        contractions_of_it(text, b"is")
        contractions_of_it(text, b"was")
    return 0


def treebank_words(str line):
    """list[str]: the words of `line`, whatever its characters."""
    cdef Rewriter text = Rewriter()
    cdef Py_UCS4 c
    text.reserve(GROWTH * len(line) + EXTRA)
    for c in line:
        put(text, c)
    flip(text)
    apply_treebank(text)
    if text.length == 0:
        return []
    return PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, &text.rows[text.current, 0], text.length).split()
