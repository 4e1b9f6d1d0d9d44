"""One function per kernel that compares it with its plain reference; results must be exactly equal."""

import numpy as np

from support import reference
from una_fast._kernels import csr
from una_fast._kernels.draws import probability
from una_fast._kernels.draws.negatives import UnaRows
from una_fast._kernels.draws.rows import RowKernel
from una_fast._kernels.ids.emit import Frame, TermTokens, pad_rows
from una_fast.arrays import ID, POINTER, RaggedArray
from una_fast.augment.counter_rng import CounterRNG
from una_fast.index.scores import TermScores, rank, score_terms


def ragged(rows) -> RaggedArray:
    indptr = np.zeros(len(rows) + 1, dtype=POINTER)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    return RaggedArray(np.array([v for row in rows for v in row], dtype=ID), indptr)


def ranked(rows):
    """Replace the ids of rows by ranks."""
    place = {term: i for i, term in enumerate(reference.ranking(rows))}
    return [[place[term] for term in row] for row in rows]


def score(rows) -> TermScores:
    """Score rows whose ids are ranks."""
    return score_terms(ragged(rows), 1 + max(term for row in rows for term in row))


def sampling_config(
    scores, n_documents, *, beta=0.5, radius=3, seed=7, variant="paper", select="tfidf", replace="tfidf", fixed=()
) -> probability.SamplingConfig:
    settings = {"beta": beta, "radius": radius, "seed": seed, "released": variant == "released"}
    settings |= {"random_select": select == "random", "random_replace": replace == "random"}
    groups = groups_of(term in fixed for term in range(len(scores.idf))) if fixed else None
    return probability.SamplingConfig(scores.idf, scores.max_tfidf, n_documents=n_documents, groups=groups, **settings)


def groups_of(fixed):
    """Return the group of each word: FIXED, or ANY script."""
    return np.array([probability.FIXED if is_fixed else probability.ANY for is_fixed in fixed], dtype=np.uint8)


def reference_negatives(rows, scores, n_documents, radius, setting, seed, epoch, numbers=None):
    listed, idf, unseen = scores.max_tfidf.tolist(), dict(enumerate(scores.idf)), -reference.ln(1 / n_documents)

    def window_of(term, z):
        return reference.rank_window(listed, term, z, radius)

    def negative(row, number):
        return reference.negative(row, listed, idf, unseen, window_of, number, seed=seed, epoch=epoch, **setting)

    return [*map(negative, rows, range(len(rows)) if numbers is None else numbers)]


def with_fixed(setting, n_terms):
    """Replace "every" n in a setting by "fixed": every n-th term and an unseen word, if at least two terms remain."""
    every = setting["every"]
    fixed = frozenset([*range(0, n_terms, every), "b"]) if every and n_terms - len(range(0, n_terms, every)) > 1 else ()
    return {name: value for name, value in setting.items() if name != "every"} | {"fixed": frozenset(fixed)}


def check_scores(rows):
    first_seen = list(dict.fromkeys(term for row in rows for term in row))
    words = ragged([[first_seen.index(term) for term in row] for row in rows])
    scores = score_terms(words, len(first_seen), n_jobs=3)
    idf, highest = reference.idf(rows), reference.max_tfidf(rows)
    np.testing.assert_allclose(scores.idf, [idf[t] for t in first_seen], rtol=1e-15)
    np.testing.assert_allclose(scores.max_tfidf, [highest[t] for t in first_seen], rtol=1e-14)
    assert scores.document_frequency.tolist() == [sum(t in row for row in rows) for t in first_seen]
    in_order = scores.max_tfidf[rank(scores.max_tfidf)]
    np.testing.assert_allclose(in_order, [highest[t] for t in reference.ranking(rows)], rtol=1e-14)
    assert np.all(np.diff(in_order) <= 0)


def check_relabel(values, labels):
    found = np.array(values, dtype=ID)
    csr.relabel(found, np.array(labels, dtype=ID), found)
    assert found.tolist() == [labels[v] for v in values]


def check_probabilities(rows, setting):
    rows = ranked(rows)
    words, scores = ragged(rows), score(rows)
    setting = with_fixed(setting, len(scores.idf))
    first, z, p = probability.replacement_probabilities(sampling_config(scores, len(rows), **setting), words)
    idf = dict(enumerate(scores.idf))
    for i, row in enumerate(rows):
        part = slice(*words.indptr[i : i + 2])
        by_term = reference.tfidf(row, idf, 0.0)
        assert first[part].tolist() == [row.index(term) for term in row]
        assert z[part].tolist() == [by_term[term] for term in row]
        chosen = {name: setting[name] for name in ("beta", "variant", "select", "fixed")}
        expected = reference.probabilities(row, idf, 0.0, **chosen)
        assert p[part].tolist() == expected


def check_negatives(rows, setting, radius, seed, epoch):
    """Check the kernel against the reference, with probabilities that it computes and with stored ones."""
    rows = ranked(rows)
    words, scores = ragged(rows), score(rows)
    setting = with_fixed(setting, len(scores.idf))
    rules = sampling_config(scores, len(rows), seed=seed, radius=radius, **setting)
    numbers = np.arange(len(rows))
    out, bounds = UnaRows(words, rules).terms(numbers, epoch)
    expected = reference_negatives(rows, scores, len(rows), radius, setting, seed, epoch)
    assert out.tolist() == [term for row in expected for term in row]
    assert bounds.tolist() == words.indptr.tolist()

    table = np.empty(len(out), dtype=np.uint32)
    first, _, p = probability.replacement_probabilities(rules, words)
    probability.pack_words(rules, words.values, words.indptr, first, p, table)
    kept, _ = UnaRows(words, rules, packed=table).terms(numbers, epoch)
    assert kept.tolist() == out.tolist()
    variant, listed = setting["variant"], np.split(p, words.indptr[1:-1])
    bits = probability.id_bits(len(scores.idf))
    pairs = zip(rows, listed, strict=True)
    assert table.tolist() == [word for row, of_row in pairs for word in reference.packed(row, of_row, bits, variant)]
    # if a draw has the same upper bits as its probability, the exact probability decides
    drawn = CounterRNG(seed, epoch, numbers).bits(max(map(len, rows))) >> np.uint64(33 + bits) << np.uint64(1 + bits)
    near = words.values + np.concatenate([drawn[i, : len(row)] for i, row in enumerate(rows)]).astype(np.uint32)
    kept, _ = UnaRows(words, rules, packed=near.astype(np.uint32)).terms(numbers, epoch)
    assert kept.tolist() == out.tolist()


def check_unseen(rows, text, setting, radius):
    """Check the negatives of new text. text: rows of term ids and of letters; letters are unseen words."""
    rows = ranked(rows)
    scores = score(rows)
    n_terms = len(scores.idf)
    text = [[t if isinstance(t, str) else t % n_terms for t in row] for row in text]
    words = ragged(ids_of(text, n_terms))
    setting = with_fixed(setting, n_terms)
    rules = sampling_config(scores, len(rows), radius=radius, **setting)
    groups = groups_of(word in setting["fixed"] for word in "abc")
    numbers = np.arange(len(text))
    backwards = numbers[::-1].astype(np.uint64).copy()  # the draws of a row depend on its number, not on its position
    out, _ = UnaRows(words, rules, streams=backwards, unseen_groups=groups).terms(numbers, 0)
    expected = reference_negatives(text, scores, len(rows), radius, setting, 7, 0, numbers=backwards.tolist())
    assert out.tolist() == [t for row in ids_of(expected, n_terms) for t in row]


def ids_of(text, n_terms):
    """Return the ids of rows of text, in which letters are unseen words."""
    return [[t if isinstance(t, int) else n_terms + "abc".index(t) for t in row] for row in text]


def check_token_writes(terms, first_terms, rows, length, pads_left):
    """Check the ids of rows of terms. first_terms: sub-words of each term at the start of a text, or None if equal."""
    table, words = ragged(terms), ragged(rows)
    suffix = [102, 103][: 1 + length % 2]
    placed = table if first_terms is None else table.followed_by(ragged(first_terms))
    input_ids, attention_mask = np.full((2, len(rows), length), -7)
    writer = TermTokens(placed, len(terms), Frame(np.array([101]), np.array(suffix), 9, pads_left))
    kernel = RowKernel(words, 0)  # changes no word
    left = kernel.token_ids(np.arange(len(rows)), 0, 0, writer, input_ids, attention_mask)
    for i, row in enumerate(rows):
        spelled = [(first_terms or terms)[t] if k == 0 else terms[t] for k, t in enumerate(row)]
        assert left[i] == ([] in spelled[:length])  # a row with a term without sub-words is left to the tokenizer
        if left[i]:
            continue
        ids = [101, *[token for term in spelled for token in term][: length - 1 - len(suffix)], *suffix]
        assert_padded(ids, input_ids[i], attention_mask[i], pads_left)


def assert_padded(ids, input_ids, attention_mask, pads_left):
    padding, ones = [9] * (len(input_ids) - len(ids)), [1] * len(ids)
    zeros = [0] * len(padding)
    assert input_ids.tolist() == (padding + ids if pads_left else ids + padding)
    assert attention_mask.tolist() == (zeros + ones if pads_left else ones + zeros)


def check_padded_rows(sentences, rows, length, dtype, pads_left):
    """Check the padded token ids of a batch. sentences: sub-words of each sentence. rows: sentences of the batch."""
    table, suffix = ragged(sentences), [102, 103][: 1 + length % 2]
    input_ids, attention_mask = np.full((2, len(rows), length), -7)
    frame = Frame(np.array([101]), np.array(suffix), 9, pads_left)
    batch = np.array(rows, dtype=np.int64)
    pad_rows[f"{np.dtype(dtype)}_t"](table.values.astype(dtype), table.indptr, batch, frame, input_ids, attention_mask)
    for i, row in enumerate(rows):
        ids = [101, *sentences[row][: length - 1 - len(suffix)], *suffix]
        assert_padded(ids, input_ids[i], attention_mask[i], pads_left)
