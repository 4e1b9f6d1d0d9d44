"""The manifest of a folder: its kind, the version of the layout, metadata, and the checksums of its arrays."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import xxhash

from una_fast.errors import InputError
from una_fast.storage.files import GIVE_READABLE, REBUILD, left_in, read_bytes

MANIFEST = "manifest.json"
COMMAND_MARK = ".una_fast.json"  # in the folder of a command of training, which is no text
ARRAY_NAME = re.compile(r"[A-Za-z0-9_]+")  # with the checksum a file of the folder, never a path out of it
CHECKSUM = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Manifest:
    """The content of a folder's manifest.json.

    kind: such as "index"; version: of the layout; meta: anything JSON can hold; checksums: xxh3_64 of each array's
    file, by the array's name; part_of: "SEAL/NAME" for a folder that belongs to the one above it: the seal of that one,
    and the name of this one there; else None.
    """

    kind: str
    version: int
    meta: dict[str, Any]
    checksums: dict[str, str]
    part_of: str | None = None

    @property
    def seal(self) -> str:
        """xxh3_64 of the manifest, and by its checksums of all content: folders of the same seal hold the same."""
        return xxhash.xxh3_64_hexdigest(json.dumps(self._fields(), sort_keys=True).encode())

    @property
    def files(self) -> frozenset[str]:
        """The names of the files that are listed, the manifest's own included."""
        return frozenset([MANIFEST, *map(array_file, self.checksums, self.checksums.values())])

    def encode(self) -> bytes:
        """The bytes of the file: JSON, with the seal, so that a changed byte of it is seen too."""
        return (json.dumps({**self._fields(), "seal": self.seal}, indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        """The manifest of these bytes. Raises ValueError for bytes that `encode` did not make."""
        try:
            fields = json.loads(data)
            del fields["seal"]
            manifest = cls(**fields)
            same = manifest._has_types() and manifest.encode() == data
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError("not the JSON of a manifest") from error
        if not same:
            raise ValueError("the seal or a byte differs")
        return manifest

    def _fields(self) -> dict[str, Any]:
        fields = asdict(self)
        return fields if self.part_of is not None else {k: v for k, v in fields.items() if k != "part_of"}

    def _has_types(self) -> bool:
        return (
            isinstance(self.kind, str)
            and type(self.version) is int
            and isinstance(self.meta, dict)
            and isinstance(self.checksums, dict)
            and all(map(ARRAY_NAME.fullmatch, self.checksums))
            and all(isinstance(checksum, str) and CHECKSUM.fullmatch(checksum) for checksum in self.checksums.values())
            and isinstance(self.part_of, (str, type(None)))
        )


def is_outdated(folder: Path, seal: str) -> bool:
    """Whether a folder was saved as this part of the folder above, but of another content than the one of `seal`."""
    parts = [(manifest.part_of or "").partition("/") for manifest in find_manifests(folder)]
    return bool(parts) and all(name == folder.name and of != seal for of, _, name in parts)


def array_file(name: str, checksum: str) -> str:
    """The name of an array's file. A file of other content has another name, so no file is ever changed."""
    return f"{name}-{checksum}.npy"


def read_manifest(folder: Path, kind: str, version: int) -> Manifest:
    """The manifest of a folder of this kind and version.

    Raises:
        InputError: no manifest, another kind or version, a changed byte, or a file that cannot be read.
    """
    try:
        data = read_bytes(folder / MANIFEST)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise not_saved(folder, kind) from error
    except OSError as error:
        raise InputError(f"{folder / MANIFEST}: cannot be read ({error.strerror or error}); {GIVE_READABLE}") from error
    return checked_manifest(data, folder, kind, version)


def not_saved(folder: Path | str, kind: str) -> InputError:
    """The error for a folder without a manifest."""
    return InputError(f"{folder}: not a saved {kind} (it has no {MANIFEST}); give the folder that was saved to")


def checked_manifest(data: bytes, folder: Path | str, kind: str, version: int) -> Manifest:
    """The manifest of these bytes, as `read_manifest` gives it; `folder` is for messages only."""
    try:
        manifest = Manifest.decode(data)
    except ValueError as error:
        raise InputError(f"{folder}/{MANIFEST}: damaged, it is not the JSON that was written; {REBUILD}") from error
    if manifest.kind != kind:
        raise InputError(f"{folder}: holds a saved {manifest.kind!r}, not a {kind!r}; give another folder")
    if manifest.version != version:
        raise InputError(
            f"{folder}: written in version {manifest.version} of the {kind} layout, and this is version {version}; "
            + REBUILD
        )
    return manifest


def find_manifest(folder: Path, name: str = MANIFEST) -> Manifest | None:
    """The manifest of a folder, whatever its kind; None where there is none, or one that una_fast did not write."""
    try:
        return Manifest.decode(read_bytes(folder / name))
    except (OSError, ValueError):
        return None


def find_manifests(folder: Path) -> list[Manifest]:
    """The manifest of a folder and those of saves that were stopped there: what they list, una_fast wrote."""
    if os.path.lexists(folder / MANIFEST) and find_manifest(folder) is None:
        return []  # somebody else's folder
    found = [find_manifest(folder, name) for name in (MANIFEST, *(path.name for path in left_in(folder, MANIFEST)))]
    return [manifest for manifest in found if manifest is not None]


def is_saved(folder: Path) -> bool:
    """True if a folder holds what was saved, whatever its kind."""
    return find_manifest(folder) is not None


def read_seal(folder: Path) -> str | None:
    """The seal of what lies in `folder` now; None where nothing was saved."""
    manifest = find_manifest(folder)
    return manifest.seal if manifest else None
