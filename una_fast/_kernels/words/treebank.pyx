"""NLTK's word tokenizer (Treebank rules), rule by rule, on code points and without the GIL.

`apply_treebank` rewrites a text with the substitutions of nltk.tokenize.destructive, in their order; str.split then
cuts the rewritten text into words.
"""

from cpython.unicode cimport PyUnicode_4BYTE_KIND, PyUnicode_FromKindAndData

from una_fast._kernels.words.characters cimport python_space, python_word
from una_fast._kernels.words.punctuation cimport punctuation
from una_fast._kernels.words.quotes cimport ending_quotes, starting_quotes
from una_fast._kernels.words.rewriter cimport APOSTROPHE, CONTRACTED, Rewriter, after, at, copy, flip, kind, put

cdef (const char*)[8] HEADS = ["can", "d", "gim", "gon", "got", "lem", "more", "wan"]
cdef (const char*)[8] TAILS = ["not", "'ye", "me", "na", "ta", "me", "'n", "na"]


def treebank_words(str line):
    """The words of `line`, list[str]. `line` may hold any characters."""
    cdef Rewriter text = Rewriter()
    cdef Py_UCS4 c
    text.reserve(GROWTH * len(line) + EXTRA)
    for c in line:
        put(text, c)
    flip(text)
    apply_treebank(text)
    return PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, &text.rows[text.current, 0], text.length).split()


cdef int apply_treebank(Rewriter text) except -1 nogil:
    """Rewrite `text` by all rules but those whose characters the text lacks.

    The rows of `text` have room for GROWTH times its length + EXTRA.
    """
    cdef unsigned int present = 0
    cdef Py_ssize_t i
    for i in range(text.length):
        present |= kind(text, i)
    starting_quotes(text, present)
    punctuation(text, present)
    surround(text)
    ending_quotes(text, present)
    if present & CONTRACTED:
        contractions(text)
    if present & APOSTROPHE:
        contraction_of_it(text, b"is")
        contraction_of_it(text, b"was")
    return 0


cdef int surround(Rewriter text) except -1 nogil:
    put(text, c' ')
    copy(text, 0, text.length)
    put(text, c' ')
    return flip(text)


cdef int contractions(Rewriter text) except -1 nogil:
    # (?i)\b(head)(tail)\b -> " \1 \2 " for the eight pairs; the last ends with (?=\s) in place of \b
    # One pass applies all eight rules: a match has word boundaries on both sides, so no two matches overlap, and the
    # spaces that a rule adds move no word boundary.
    cdef Py_ssize_t i = 0, middle = 0, stop = 0
    while i < text.length:
        if kind(text, i) & CONTRACTED and not word_at(text, i - 1) and contracted(text, i, &middle, &stop):
            put_halves(text, i, middle, stop)
            i = stop
        else:
            put(text, at(text, i))
            i += 1
    return flip(text)


cdef bint contracted(Rewriter text, Py_ssize_t i, Py_ssize_t* middle, Py_ssize_t* stop) except? -1 nogil:
    """Whether a contraction starts at `i`, the start of a word.

    Sets `middle` to the place where the tail of the contraction starts, and `stop` to the place after its end.
    """
    cdef int k
    for k in range(8):
        middle[0] = after(text, i, HEADS[k])
        stop[0] = after(text, middle[0], TAILS[k]) if middle[0] else 0
        if stop[0] and not word_at(text, stop[0]):
            return k < 7 or (stop[0] < text.length and python_space(at(text, stop[0])))
    return False


cdef int contraction_of_it(Rewriter text, const char* tail) except -1 nogil:
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


cdef bint word_at(Rewriter text, Py_ssize_t i) except? -1 nogil:
    """Whether the text has a character `i` that matches the \\w of Python's `re`."""
    return 0 <= i < text.length and python_word(at(text, i))


cdef int put_halves(Rewriter text, Py_ssize_t start, Py_ssize_t middle, Py_ssize_t stop) except -1 nogil:
    put(text, c' ')
    copy(text, start, middle)
    put(text, c' ')
    copy(text, middle, stop)
    return put(text, c' ')
