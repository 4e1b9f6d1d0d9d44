"""Makes the sets of labelled near-misses from public files: ``python -m bench.evidence.near_sets --to data``.

Downloads the files that near_sets.tsv names by commit and checksum, and writes near_miss/pairs/: four sets with a dev
and a test part, three sets with a test part only, and 24,000 unlabelled questions that are in none of Quora's sets.
near_sets.tsv has their checksums too.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import json
import pickle
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import xxhash

from bench import script
from train.download import fetch_file, from_address
from una_fast.errors import InputError
from una_fast.storage.files import write_file

TABLE = Path(__file__).with_suffix(".tsv")
SOURCES, PAIRS = "near_miss/sources", "near_miss/pairs"  # folders in the folder of the data
SOURCES_OPTION = script.FOLDER | {
    "flag": "--from",
    "required": False,
    "help": "the public files, if they are already there",
}
QUESTIONS = "questions.txt"
DEV_SHARES = {"qqp_near": 4, "qqp_close": 4, "paws_wiki": 2, "checklist": 3}  # dev: one of so many first sentences
Pair = tuple[str, str, int, str]  # two sentences, 1 for the same meaning, and the group

WORD = re.compile(r"[a-z]+|\d+(?:[.,]\d+)*")
NEGATIONS = {*"not never no none without nobody nothing cannot neither nor".split()}
OPPOSITES = """increase/decrease gain/lose more/less best/worst good/bad before/after buy/sell on/off open/close
enable/disable start/stop love/hate men/women man/woman boy/girl boys/girls male/female husband/wife black/white
hot/cold advantages/disadvantages pros/cons old/new young/old first/last high/low higher/lower big/small long/short
fast/slow rich/poor win/lose north/south east/west left/right up/down in/out add/remove install/uninstall
introvert/extrovert positive/negative public/private legal/illegal possible/impossible always/never most/least
better/worse happy/unhappy happy/sad father/mother son/daughter brother/sister girlfriend/boyfriend smart/stupid
right/wrong true/false safe/dangerous hard/easy difficult/easy import/export block/unblock lock/unlock follow/unfollow
delete/create send/receive lend/borrow teach/learn internal/external input/output day/night reduce/increase
improve/worsen maximum/minimum online/offline strong/weak thin/fat summer/winter"""
OPPOSED = {frozenset(pair.split("/")) for pair in OPPOSITES.split()}
# pairs of each group in qqp_near
MOST_NEAR = {"word": 500, "words": 250, "added": 300, "name": 400, "number": 400, "polarity": 500, "order": 300}
CHECKLIST = {  # group -> tests of CheckList's suite, by position
    **{"added": (0,), "word": (1, 2, 6), "filler": (3, 4), "synonym": (7,), "polarity": (10, *range(29, 35))},
    **{"double": (11, 35), "name": (16, 17, 18), "temporal": (27, 28), "swap": (36, 41, 43, 45)},
    **{"reworded": (38, 42, 44, 49), "reordered": (40, 48), "logic": (47,)},
}
MOST_CHECKLIST = 80  # pairs of one test


class Listed(NamedTuple):
    """A row of TABLE."""

    file: str
    sha256: str
    address: str  # "" for a file that is made from the downloaded ones

    def checked(self, path: Path) -> Path:
        """Return the path of this file. Raises InputError if its checksum is another."""
        if (found := hashlib.sha256(path.read_bytes()).hexdigest()) != self.sha256:
            raise InputError(f"{path}: its sha256 is {found}, not {self.sha256}: delete it, and repeat the command")
        return path

    def download(self, address: str, folder: Path) -> Path:
        """Download this file into a folder, check it, and return its path."""
        return self.checked(from_address(address, folder))


def fetch_all(listed: Iterable[Listed], folder: Path) -> dict[str, bytes]:
    """Download the files that a folder lacks, and return the contents of all by name.

    Raises:
        InputError: a download fails, or a file has another checksum.
    """
    contents = {}
    for one in listed:
        path = folder / one.file
        fetch_file(path, one.address, one.download)
        contents[one.file] = one.checked(path).read_bytes()
    return contents


def write_sets(to: Path, sources: Path | None = None) -> None:
    """Download what is missing in the folder of the sources, and write the sets into PAIRS."""
    listed = [Listed(*line.split("\t")) for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]
    made = make(fetch_all([one for one in listed if one.address], sources or to / SOURCES))
    for one in listed:
        if not one.address:
            write_file(to / PAIRS / one.file, made[one.file])
            print(one.checked(to / PAIRS / one.file))


def make(sources: Mapping[str, bytes]) -> dict[str, str]:
    """Return the texts of the files in PAIRS by name. sources: the downloaded files by name.

    A test part has no pair with a text of any dev part, so that no setting was chosen on its texts.
    """
    rng = Random(7)  # of all sets, one after the other
    pairs = qqp(sources["similiar_qqp_full.json.gz"])
    sets, questions = qqp_sets(pairs, rng)
    sets["checklist"] = checklist(sources["qqp_suite.tar.gz"], rng)
    rows = _table(sources["dev-en.tsv"], delimiter="\t", quoting=csv.QUOTE_NONE)
    sets["paws_wiki"] = [(*row[-3:-1], row[-1], "paws") for row in rows if row[-1] in ("0", "1")]
    rows = _table(sources["dev_and_test.tsv"], delimiter="\t", quoting=csv.QUOTE_NONE)
    sets["paws_qqp"] = [(*(ast.literal_eval(text).decode() for text in row[1:3]), row[3], "paws") for row in rows[1:]]
    sets["medical"] = [(*row[1:4], "medical") for row in _table(sources["mqp.csv"])]
    sets = {name: _distinct(rows) for name, rows in sets.items()}
    parts = {f"{name}_dev": [pair for pair in sets[name] if is_dev(name, pair)] for name in DEV_SHARES}
    chosen_on = {text.lower() for part in parts.values() for pair in part for text in pair[:2]}
    for name, of in sets.items():
        parts[f"{name}_test"] = [pair for pair in of if chosen_on.isdisjoint(text.lower() for text in pair[:2])]
    head = ("sentence1", "sentence2", "label", "group")
    made = {f"{name}.tsv": _lines("\t".join(map(str, row)) for row in (head, *part)) for name, part in parts.items()}
    return {**made, QUESTIONS: _lines(questions)}


def is_dev(name: str, pair: Pair) -> bool:
    """Return whether a pair of a set in DEV_SHARES is in its dev part."""
    return xxhash.xxh3_64_intdigest(pair[0].lower().encode()) % DEV_SHARES[name] == 0


def _clean(text: str) -> str:
    return " ".join(text.split())


def _distinct(pairs: Iterable[tuple[str, str, Any, str]]) -> list[Pair]:
    """Normalise the spaces of pairs; drop repeated pairs, and pairs with an empty text."""
    kept: dict[tuple[str, str], Pair] = {}
    for first, second, label, group in pairs:
        if all(key := (_clean(first), _clean(second))):
            kept.setdefault(key, (*key, int(label), group))
    return [*kept.values()]


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _table(content: bytes, **format: Any) -> list[list[str]]:
    return [*csv.reader(io.StringIO(content.decode(), newline=""), **format)]


def _unpacked(archive: bytes) -> bytes:
    """Return the first file of a tar archive."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return next(file.read() for member in tar if (file := tar.extractfile(member)))


def qqp(archive: bytes) -> list[tuple[str, str, int]]:
    """Return Quora's question pairs: two questions, and 1 for duplicates."""
    pairs: dict[tuple[str, ...], tuple[str, str, int]] = {}
    for row in json.loads(_unpacked(archive).decode("utf-8", "replace")):
        first, second = _clean(row["text_a"]), _clean(row["text_b"])
        if first.lower() != second.lower():
            pairs.setdefault(tuple(sorted((first.lower(), second.lower()))), (first, second, int(row["label"] == 1)))
    return [*pairs.values()]


def qqp_sets(pairs: list[tuple[str, str, int]], rng: Random) -> tuple[dict[str, Any], list[str]]:
    """Return three sets of Quora's pairs, and the questions that are in none of them.

    qqp_near has pairs that differ a little and are no duplicates, and random duplicates. qqp_close has pairs of both
    labels that differ a little. qqp_all has random pairs of both labels.
    """
    shuffled = [*pairs]
    rng.shuffle(shuffled)
    taken: Counter[str] = Counter()
    near: list[Pair] = []
    for first, second, same in shuffled:
        group = "" if same else difference(first, second)
        if group and taken[group] < MOST_NEAR[group]:
            taken[group] += 1
            near.append((first, second, 0, group))
    near += [(first, second, 1, "paraphrase") for first, second, same in shuffled if same][:1600]
    used = {text.lower() for pair in near for text in pair[:2]}
    texts = {text for pair in pairs for text in pair[:2] if text.lower() not in used}
    questions = sorted(text for text in texts if 4 <= len(text.split()) <= 16)
    rng.shuffle(questions)
    del questions[24_000:]
    unlabelled = {*questions}
    rest = [(*pair, difference(*pair[:2])) for pair in pairs if unlabelled.isdisjoint(pair[:2])]
    close, far = [pair for pair in rest if pair[3]], [(*pair[:3], pair[3] or "far") for pair in rest]
    return {"qqp_near": near, "qqp_close": _both(close, 1200, 1), "qqp_all": _both(far, 1000, 2)}, questions


def _both(pairs: list[Pair], n: int, seed: int) -> list[Pair]:
    """Return n random pairs of label 1, then n of label 0."""
    Random(seed).shuffle(pairs)
    return [pair for label in (1, 0) for pair in [pair for pair in pairs if pair[2] == label][:n]]


def difference(first: str, second: str) -> str:
    """Return how two questions differ: a key of MOST_NEAR, or "" if they differ by much."""
    words = [WORD.findall(text.lower()) for text in (first, second)]
    counts = [Counter(side) for side in words]
    lost, new = (list((counts[side] - counts[1 - side]).elements()) for side in (0, 1))
    longest, changed = max(map(len, words)), {*lost, *new}
    if longest < 4 or words[0] == words[1] or max(len(lost), len(new)) > 2:
        return ""
    if not changed:
        return "order"
    if len(lost) + len(new) > max(2, 0.45 * longest):
        return ""
    if all(word[0].isdigit() for word in changed):
        return "number"
    if (len(changed) <= 2 and changed & NEGATIONS) or any(frozenset((a, b)) in OPPOSED for a in lost for b in new):
        return "polarity"
    if len(lost) == len(new) == 1:
        return "name" if _is_name(first, *lost) and _is_name(second, *new) else "word"
    return "words" if lost and new else "added"


def _is_name(text: str, word: str) -> bool:
    """Return whether a word has a capital after another word."""
    return re.search(rf"(?<=\w )\b({re.escape(word.capitalize())}|{re.escape(word.upper())})\b", text) is not None


def checklist(archive: bytes, rng: Random) -> list[Pair]:
    """Return random pairs of each test of CHECKLIST.

    The label is the test's, but 0 in the group "swap": one of its tests has label 1, against its name.
    """
    tests = [*DataOnly(io.BytesIO(_unpacked(archive))).load().state["tests"].values()]
    groups = {place: group for group, places in CHECKLIST.items() for place in places}
    pairs: list[Pair] = []
    for place, group in sorted(groups.items()):
        test = tests[place].state
        data = [pair for pair in test["data"] if len(pair) == 2 and isinstance(pair[0], str)]
        rng.shuffle(data)
        label = 0 if group == "swap" else test["labels"]
        pairs += [(first, second, label, group) for first, second in data[:MOST_CHECKLIST]]
    return pairs


class DataOnly(pickle.Unpickler):
    """Reads a pickle without running its code: OrderedDict is read as dict, any other class or function as a stub."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the class that stands for `module`.`name`."""
        return dict if (module, name) == ("collections", "OrderedDict") else Stub


class Stub:
    """Stands for any object that is not plain data. `state` has its attributes."""

    state: Any = None

    def __init__(self, *arguments: Any) -> None: ...

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __call__(self, *arguments: Any) -> Stub:
        return Stub()

    def __setitem__(self, key: Any, value: Any) -> None: ...


def main() -> int:
    return script.run(__doc__, write_sets, to=script.DATA, sources=SOURCES_OPTION)


if __name__ == "__main__":
    sys.exit(main())
