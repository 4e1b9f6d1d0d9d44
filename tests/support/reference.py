"""Plain Python, written from section 3 of the paper; where the paper is silent, from docs/paper-and-released-code.md.

It imports nothing of una_fast. A sentence is a list of words (or ids); scores are in dicts or lists.
"""

from __future__ import annotations

import bisect
import functools
from decimal import Context, Decimal

MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15
TRIES = 64
NUMBERS = 128


# --- step 1, equation 2 ---------------------------------------------------------------------------------------------


@functools.cache
def ln(x):
    """ln(x), correctly rounded: 60 digits are enough for every double."""
    return float(Context(prec=60).ln(Decimal(x)))


@functools.cache
def ln1p(x):
    """ln(1 + x), correctly rounded."""
    return ln(Context(prec=2000).add(1, Decimal(x)))


def idf(documents):
    """Term -> -ln(N_t / N)."""
    frequency = {}
    for words in documents:
        for term in set(words):
            frequency[term] = frequency.get(term, 0) + 1
    return {term: 0.0 - ln(n / len(documents)) for term, n in frequency.items()}


def tfidf(words, idf_of, unseen):
    """Term -> ln(1 + n_t / n) idf, in order of first appearance."""
    z = {}
    for term in words:
        if term not in z:
            z[term] = ln1p(words.count(term) / len(words)) * idf_of.get(term, unseen)
    return z


def max_tfidf(documents):
    """Term -> its highest tf-idf in any document, in order of first appearance."""
    idf_of, highest = idf(documents), {}
    for words in documents:
        for term, z in tfidf(words, idf_of, 0.0).items():
            highest[term] = max(z, highest.get(term, z))
    return highest


def ranking(documents):
    """Terms from the highest score to the lowest, ties by first appearance (dicts keep it, sorting is stable)."""
    highest = max_tfidf(documents)
    return sorted(highest, key=lambda term: -highest[term])


# --- step 2, equations 3 and 4 --------------------------------------------------------------------------------------


def probabilities(words, idf_of, unseen, beta, variant="paper", select="tfidf", fixed=frozenset()):
    """The probability of each word. The words in `fixed` have 0, and the equations are applied to the others."""
    z = tfidf(words, idf_of, unseen)
    others = iter(of_scores([word for word in words if word not in fixed], z, beta, variant, select))
    return [0.0 if word in fixed else next(others) for word in words]


def of_scores(words, z, beta, variant, select):
    """The probability of each word, by the scores z of the terms."""
    if not words or select == "random":
        return [beta] * len(words)
    z = {term: z[term] for term in words}
    lowest = min(z.values())
    over = list(z) if variant == "paper" else words  # C is a mean over distinct terms, or over words
    total = 0.0
    for term in over:
        total += z[term] - lowest
    if total == 0:
        p = [beta for _ in words]
    else:
        scale = beta / (total / len(over))
        p = [min(scale * (z[term] - lowest), 1.0) for term in words]
    top = max(z, key=lambda term: z[term])  # the first term if several have the highest score
    if variant == "paper":
        return [1.0 if term == top else p[k] for k, term in enumerate(words)]
    if max(p) < 1:
        p[words.index(top)] = 1.0
    return p


def weighted(words, p, bits, variant="paper"):
    """Of each word, its id in the lowest `bits`; above them one bit, 1 if its draw decides for later places too; above
    that floor(2**n p) in the n = 31 - bits left, for p = 1 one step less, or 0 where another place decides."""
    found, steps = [], 2 ** (31 - bits)
    for k, word in enumerate(words):
        decides = variant == "released" or word not in words[:k]
        again = variant == "paper" and decides and word in words[k + 1 :]
        height = min(int(steps * p[k]), steps - 1) if decides else 0
        found.append((height * 2 + again) * 2**bits + word)
    return found


# --- step 3 ---------------------------------------------------------------------------------------------------------


def rank_window(scores, term, z, radius):
    """Ids from `radius` below to `radius` above a term, or around the place of an unseen word's score z."""
    if term is None:
        place = bisect.bisect_right([-s for s in scores], -z)  # after all scores >= z
        return max(0, place - radius), min(len(scores), place + radius)
    return max(0, term - radius), min(len(scores), term + radius + 1)


def candidates(scores, window, excluded, fixed=frozenset()):
    """The ids of the window that may be drawn; without one, the window reaches one rank further, and again."""
    ids = [j for j in range(*window) if j != excluded and j not in fixed]
    wider = (max(0, window[0] - 1), min(len(scores), window[1] + 1))
    return ids or candidates(scores, wider, excluded, fixed)


def candidate_weights(scores, window, excluded, replace="tfidf", fixed=frozenset()):
    """Weight of each id of the window: the probability of a replacement before normalisation."""
    ids = candidates(scores, window, excluded, fixed)
    if replace == "random" or all(scores[j] == 0 for j in ids):
        return dict.fromkeys(ids, 1.0)
    return {j: scores[j] for j in ids}


# --- the draws: SplitMix64 by counter -------------------------------------------------------------------------------


def mix64(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def draw64(seed, epoch, row, position, number):
    key = mix64((mix64(seed & MASK) + (epoch + 1) * GAMMA) & MASK)
    key = mix64((key + (row + 1) * GAMMA) & MASK)
    return mix64((key + (position * NUMBERS + number + 1) * GAMMA) & MASK)


def unit(bits):
    return (bits >> 11) * 2.0**-53


def draw_replacement(scores, window, excluded, replace, bits_of, fixed=frozenset()):
    """An id of the window, drawn by rejection: candidates are uniform, and accepted in proportion to their weight."""
    start, stop = window
    envelope = 0.0 if replace == "random" else scores[start - start % 64]
    for number in range(1, TRIES + 1):
        product = bits_of(number) * (stop - start)
        j = start + (product >> 64)
        if j != excluded and j not in fixed and (envelope == 0 or unit(product & MASK) * envelope < scores[j]):
            return j
    ids = candidates(scores, window, excluded, fixed)
    if replace == "random" or all(scores[j] == 0 for j in ids):
        return ids[(bits_of(TRIES + 1) * len(ids)) >> 64]
    return invert(ids, [scores[j] for j in ids], unit(bits_of(TRIES + 1)))


def invert(ids, weights, u):
    """The first id at which the cumulative weight exceeds u times the total weight."""
    total = 0.0
    for weight in weights:
        total += weight
    target, last = u * total, None
    for j, weight in zip(ids, weights, strict=True):
        if weight > 0:
            last = j
            target -= weight
            if target < 0:
                break
    return last


def negative(
    ids,
    scores,
    idf_of,
    unseen,
    window_of,
    row,
    *,
    beta,
    seed,
    epoch,
    variant="paper",
    select="tfidf",
    replace="tfidf",
    fixed=frozenset(),
    others_of=lambda term: frozenset(),
):
    """The ids of the negative of a row. ids: term ids, or words that no term has (str); window_of(term or None, z);
    fixed: those of both that are neither replaced nor drawn; others_of(term): the ids that never replace a term."""
    p = probabilities(ids, idf_of, unseen, beta, variant, select, fixed)
    draws = [unit(draw64(seed, epoch, row, position, 0)) for position in range(len(ids))]
    if select == "random" and variant == "paper":  # if no draw is below p, the smallest one decides
        of_terms = {draws[k]: term for k, term in enumerate(ids) if ids.index(term) == k and term not in fixed}
        if of_terms and not any(draws[ids.index(term)] < p[k] for k, term in enumerate(ids)):
            p = [1.0 if term == of_terms[min(of_terms)] else 0.0 for term in ids]
    z = tfidf(ids, idf_of, unseen)
    out, drawn = [], {}
    for k, term in enumerate(ids):
        position = k if variant == "released" else ids.index(term)
        if position not in drawn:
            new = term
            if draws[position] < p[k]:
                known = term if not isinstance(term, str) else None
                excluded = term if variant == "paper" else None
                window = (0, len(scores)) if replace == "random" else window_of(known, z[term])
                never = fixed | others_of(term)
                new = draw_replacement(
                    scores, window, excluded, replace, lambda n, at=position: draw64(seed, epoch, row, at, n), never
                )
            drawn[position] = new
        out.append(drawn[position])
    return out
