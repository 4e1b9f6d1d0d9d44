"""Tells near-misses from pairs with the same meaning, by the token embeddings of an encoder that stays as it is."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from una_fast.corpus.documents import encode_sentence
from una_fast.errors import InputError, as_input_errors, counted, first_line, is_number, suggests_keywords, warn_user
from una_fast.storage.files import checksum_of, write_file
from una_fast.verify.encoder import batches_by_length, open_encoder
from una_fast.verify.model import EncodedText, PairModel, make_batch

FORMAT = 1  # of the folder; another number is refused
SETTINGS, WEIGHTS = "verifier.json", "model.safetensors"
PACKAGED = Path(__file__).with_name("minilm")
FEW_PAIRS = 50
CHUNK = 8192  # pairs whose texts are in memory at the same time
BATCH_TOKENS = 4096  # of a batch of pairs, with padding
Text = str | EncodedText


@dataclass(frozen=True)
class VerifierSettings:
    """What verifier.json stores.

    Attributes:
        encoder: digest of the encoder.
        encoder_width: width of its token embeddings.
        threshold: probability above which a pair counts as a near-miss.
        scripts: the scripts of the training text, by the first word of their letters' Unicode names.
        least_shared: smallest share of distinct tokens in common of two texts that are judged.
        max_tokens: the largest number of tokens of a text that is judged.
        width, heads, layers: the shape of the network.
        note: where the training data is from and what it is licensed under; shown nowhere.
    """

    encoder: str
    encoder_width: int
    threshold: float = 0.5
    scripts: tuple[str, ...] = ("LATIN",)
    least_shared: float = 0.0
    max_tokens: int = 64
    width: int = 128
    heads: int = 4
    layers: int = 3
    note: dict[str, Any] = field(default_factory=dict)

    def model(self) -> PairModel:
        """Make the network with random weights."""
        return PairModel(self.encoder_width, self.width, self.heads, self.layers, self.max_tokens)


class Verifier:
    """Says how probably two texts that look alike mean different things, and so rejects wrong answers of a cache.

    A pair of texts in either order gets the same result, to the bit. Where nothing was learned, the verifier abstains:
    a pair has the probability 0 if a text is empty, has more than 64 tokens, or is in another script than the training
    text, and, unless labelled pairs were learned, if the two share fewer than 35% of their distinct tokens. A pair with
    the same tokens also has 0.

    Args:
        folder: what `train.verifier` wrote. None opens the packaged verifier for all-MiniLM-L6-v2.
        encoder: a SentenceTransformer, or the folder or the name of its model. It must be the encoder with which the
            verifier was trained. None opens the model that the folder names.

    Attributes:
        threshold: `accepts` rejects a pair with a higher probability. It may be set, to a number from 0 to 1.

    Raises:
        InputError: the folder is missing, damaged or of another version, or was trained with another encoder.
    """

    @suggests_keywords
    def __init__(self, folder: str | Path | None = None, *, encoder: Any = None):
        path = PACKAGED if folder is None else Path(folder)
        settings, name, model = read_folder(path)
        reader = open_encoder(name if encoder is None else encoder)
        if reader.digest != settings.encoder:
            raise InputError(
                f"encoder: {reader.name} is not the encoder with which this verifier was trained (digest "
                f"{reader.digest}, expected {settings.encoder}): give that one, or train a verifier for yours with "
                "`python -m train.verifier`"
            )
        self._settings, self._encoder = settings, reader
        self._model = model.eval().to(next(reader.network.parameters()).device)
        self.threshold = settings.threshold

    @property
    def threshold(self) -> float:  # noqa: D102  see the class
        return self._threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        if not is_number(value) or not 0 <= value <= 1:  # NaN fails too
            raise InputError(f"threshold={value!r}: must be from 0 to 1")
        self._threshold = float(value)

    def encode(self, texts: Iterable[str]) -> list[EncodedText]:
        """Compute the token embeddings of texts in fp16, for a store. The other methods accept them instead of texts.

        Args:
            texts: any texts.

        Returns:
            One `EncodedText` per text. With MiniLM, a text of n tokens takes 772 n bytes.

        Raises:
            InputError: `texts` is not a list of str, or the encoder's token embeddings are not finite.
        """
        given = _listed("texts", texts)
        return self._encoder.encode(given, self._settings.max_tokens, self._settings.scripts)

    def near_miss(self, pairs: Iterable[tuple[Text, Text]]) -> NDArray[np.float32]:
        """Compute how probably each pair is a near-miss.

        Args:
            pairs: tuples of two texts, or of results of `encode`.

        Returns:
            The probabilities, float32 (n_pairs,).

        Raises:
            InputError: an item is not a pair of texts, or an encoded text has NaN or the wrong shape.
        """
        return self._probabilities([*enumerate(_listed("pairs", pairs))])

    def _probabilities(self, numbered: Sequence[tuple[int, Any]]) -> NDArray[np.float32]:
        """Return the probability of each pair, float32 (n_pairs,). numbered: the number of a pair, and the pair."""
        out = np.zeros(len(numbered), np.float32)
        for start in range(0, len(numbered), CHUNK):
            part = numbered[start : start + CHUNK]
            out[start : start + len(part)] = self._judge(self._encoded(part))
        return out

    def accepts(self, pairs: Iterable[tuple[Text, Text]]) -> NDArray[np.bool_]:
        """Decide whether each pair is not a near-miss at `threshold`.

        Args:
            pairs: as in `near_miss`.

        Returns:
            The decisions, bool (n_pairs,).
        """
        return self.near_miss(pairs) <= self.threshold

    def calibrate(self, pairs: Iterable[tuple[Any, ...]], most_rejected: float = 0.05) -> float:
        """Set `threshold` so that at most a share of pairs with the same meaning is rejected.

        Fewer than 50 such pairs give a warning, because the threshold then rests on one or two of them.

        Args:
            pairs: tuples (text, text) of the same meaning, or (text, text, label[, group]) as in `score_pairs`; pairs
                with the label 0, near-misses, do not count.
            most_rejected: the share, at least 0 and below 1.

        Returns:
            The new threshold.

        Raises:
            InputError: no pair has the same meaning, the verifier abstains from nearly all of them, an item is not such
                a tuple, a label is not 0 or 1, or `most_rejected` is out of range.
        """
        if not is_number(most_rejected) or not 0 <= most_rejected < 1:
            raise InputError(f"most_rejected={most_rejected!r}: must be at least 0 and below 1")
        meant: list[tuple[int, Any]] = []
        for number, item in enumerate(_listed("pairs", pairs)):
            if not _is_tuple(item) or not 2 <= len(item) <= 4:
                allowed = "must be (text, text) or (text, text, label[, group])"
                raise InputError(f"pairs[{number}]: is {item!r:.80}, {allowed}")
            label = item[2] if len(item) > 2 else 1
            if label not in (0, 1):
                raise InputError(f"pairs[{number}]: label {label!r}: must be 1 (same meaning) or 0 (near-miss)")
            if label == 1:
                meant.append((number, item[:2]))
        same = np.sort(self._probabilities(meant))
        if not len(same):
            raise InputError("pairs: none has the same meaning: give pairs with the label 1")
        threshold = float(same[-(math.floor(round(most_rejected * len(same), 9)) + 1)])
        if threshold == 0:
            n_abstained = np.count_nonzero(same == 0)
            raise InputError(
                f"pairs: the verifier abstains from {n_abstained:,} of the {counted(len(same), 'pair')} with the same "
                "meaning, so no threshold follows: give pairs of similar texts"
            )
        if len(same) < FEW_PAIRS:
            warn_user(f"pairs: the threshold rests on {counted(len(same), 'pair')}: give {FEW_PAIRS} or more")
        self.threshold = threshold
        return threshold

    def save(self, folder: str | Path) -> None:
        """Write the verifier with its threshold into a folder, which is made if it is missing.

        Args:
            folder: where to write verifier.json and model.safetensors.

        Raises:
            InputError: the folder cannot be written.
        """
        settings = replace(self._settings, threshold=self.threshold)
        write_folder(Path(folder), settings, self._model, self._encoder.name)

    def _encoded(self, numbered: Sequence[tuple[int, Any]]) -> list[tuple[EncodedText, EncodedText]]:
        """Encode the texts of pairs, each distinct text once. numbered: see `_probabilities`."""
        texts: dict[str, None] = {}  # distinct, in order
        checked: set[int] = set()
        for number, pair in numbered:
            if not _is_tuple(pair) or len(pair) != 2:
                raise InputError(f"pairs[{number}]: is {pair!r:.80}, must be a tuple of two texts")
            for text in pair:
                if isinstance(text, EncodedText):
                    if id(text) not in checked:
                        self._check(text, number)
                        checked.add(id(text))
                elif isinstance(text, str):
                    if text not in texts:
                        encode_sentence(text, f"pairs[{number}]")  # raises InputError if it has a lone surrogate
                        texts[text] = None
                else:
                    raise InputError(
                        f"pairs[{number}]: {text!r:.80} is {type(text).__name__}: give str, or `encode` it"
                    )
        encoded = dict(zip(texts, self.encode([*texts]), strict=True))

        def of(text: Text) -> EncodedText:
            return encoded[text] if isinstance(text, str) else text

        return [(of(first), of(second)) for _, (first, second) in numbered]

    def _check(self, text: EncodedText, number: int) -> None:
        """Raise InputError unless an encoded text has the arrays that `encode` returns."""
        ids, embeddings = text
        if not isinstance(ids, np.ndarray) or not isinstance(embeddings, np.ndarray):
            got = f"token_ids {type(ids).__name__} and embeddings {type(embeddings).__name__}"
            raise InputError(f"pairs[{number}]: {got}: give numpy arrays, as `encode` returns them")
        width, most = self._settings.encoder_width, self._settings.max_tokens
        is_sound = ids.ndim == 1 and ids.dtype.kind in "iu" and embeddings.dtype.kind == "f"
        if not is_sound or embeddings.shape != (len(ids), width) or len(ids) > most:
            got = f"token_ids {ids.dtype} {ids.shape} and embeddings {embeddings.dtype} {embeddings.shape}"
            raise InputError(f"pairs[{number}]: {got}: give int32 (n,) and float16 (n, {width}), n at most {most}")
        if len(ids) and not 0 <= ids.min() <= ids.max() < len(self._encoder.words):
            raise InputError(f"pairs[{number}]: a token id is not in the encoder's vocabulary: encode the text again")
        if not np.isfinite(embeddings).all():
            raise InputError(f"pairs[{number}]: an embedding is NaN or infinite: encode the text again")

    @torch.inference_mode()
    def _judge(self, pairs: Sequence[tuple[EncodedText, EncodedText]]) -> NDArray[np.float32]:
        """Return the probability of each pair, float32 (n_pairs,)."""
        out = np.zeros(len(pairs), np.float32)
        ordered = [pair if _key(pair[0]) <= _key(pair[1]) else pair[::-1] for pair in pairs]
        device = next(self._model.parameters()).device
        judged = {i: pair for i, pair in enumerate(ordered) if _is_judged(*pair, self._settings.least_shared)}
        lengths = {i: sum(len(text.token_ids) for text in pair) for i, pair in judged.items()}
        for rows in batches_by_length(lengths, BATCH_TOKENS):
            batch = make_batch([ordered[row] for row in rows], self._encoder.words)
            logits = self._model(batch.to(device)).float().cpu()
            out[rows] = torch.sigmoid(logits).numpy()
        return out

    def __repr__(self) -> str:
        return f"<una_fast.Verifier of {self._encoder.name}, threshold {self.threshold:.3f}>"


def _key(text: EncodedText) -> tuple[int, bytes]:
    """Return what puts the texts of a pair into one order, so that both orders give the same bits.

    A pair with the same tokens is not judged.
    """
    return len(text.token_ids), text.token_ids.tobytes()


def _is_judged(a: EncodedText, b: EncodedText, least_shared: float) -> bool:
    """Return whether both texts have tokens, not the same ones, and share enough of them."""
    if not len(a.token_ids) or not len(b.token_ids) or np.array_equal(a.token_ids, b.token_ids):
        return False
    ids, others = set(a.token_ids.tolist()), set(b.token_ids.tolist())
    return len(ids & others) >= least_shared * len(ids | others)


def _is_tuple(item: Any) -> bool:
    """Return whether an item of a list of pairs is a tuple or a list. An `EncodedText` is a tuple, but one text."""
    return isinstance(item, (tuple, list)) and not isinstance(item, EncodedText)


def _listed(name: str, items: Iterable[Any]) -> list[Any]:
    if isinstance(items, (str, bytes, dict, EncodedText)) or not isinstance(items, Iterable):
        raise InputError(f"{name}: is {type(items).__name__}, must be a list")
    return [*items]


def write_folder(folder: Path, settings: VerifierSettings, model: PairModel, encoder: str) -> None:
    """Write the network in fp16 and its settings. encoder: its folder or name."""
    from safetensors.torch import save

    weights = save({name: tensor.detach().cpu().half().contiguous() for name, tensor in model.state_dict().items()})
    content = {"format": FORMAT, "model": encoder, **asdict(settings), "weights": checksum_of([weights])}
    write_file(folder / WEIGHTS, weights)
    write_file(folder / SETTINGS, json.dumps(content, indent=1) + "\n")


def read_folder(folder: Path) -> tuple[VerifierSettings, str, PairModel]:
    """Read what `write_folder` wrote: the settings, the encoder's folder or name, and the network in fp32."""
    again = "write it again with `python -m train.verifier`"
    if not (folder / SETTINGS).is_file():
        raise InputError(f"verifier {folder}: contains no {SETTINGS}: give a folder that `train.verifier` wrote")
    try:
        content = json.loads((folder / SETTINGS).read_bytes())
        if (version := content.pop("format")) != FORMAT:
            raise InputError(f"verifier {folder}: has format {version!r}, this version reads {FORMAT}: {again}")
        name, checksum = str(content.pop("model")), content.pop("weights")
        settings = VerifierSettings(**content)
        _check(settings)
        settings = replace(settings, scripts=tuple(settings.scripts))
        weights = (folder / WEIGHTS).read_bytes()
    except InputError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"verifier {folder}: cannot be read ({first_line(error)}): {again}") from error
    if checksum_of([weights]) != checksum:
        raise InputError(f"verifier {folder}: {WEIGHTS} is truncated or altered: {again}")
    with as_input_errors(f"verifier {folder}", "read"):
        from safetensors.torch import load

        model = settings.model()
        model.load_state_dict({name: tensor.float() for name, tensor in load(weights).items()})
    if not all(torch.isfinite(tensor).all() for tensor in model.state_dict().values()):
        raise InputError(f"verifier {folder}: some weights are NaN or infinite: {again}")
    return settings, name, model


LIMITS = {"encoder_width": 65_536, "max_tokens": 4096, "width": 4096, "heads": 64, "layers": 64}


def _check(settings: VerifierSettings) -> None:
    """Raise ValueError if verifier.json has a value that no run writes."""
    for name, most in LIMITS.items():
        value = getattr(settings, name)
        if type(value) is not int or not 0 < value <= most:
            raise ValueError(f"{name} is {value!r}")
    shares = settings.threshold, settings.least_shared
    if settings.width % settings.heads or not all(is_number(value) and 0 <= value <= 1 for value in shares):
        shape = f"width {settings.width}, heads {settings.heads}"
        raise ValueError(f"{shape}, threshold {settings.threshold!r}, least_shared {settings.least_shared!r}")
    scripts: Any = settings.scripts
    if not isinstance(scripts, list) or not all(isinstance(text, str) for text in (settings.encoder, *scripts)):
        raise ValueError(f"encoder {settings.encoder!r:.80} or scripts {scripts!r:.80} is not text")
