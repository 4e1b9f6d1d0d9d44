"""Which entries of a folder una_fast wrote. Only those are ever deleted.

While a folder NAME is saved, its new content lies beside it as ``.NAME.<32 hexadecimal digits>.partial``, and where the
system cannot exchange two folders, the old content for a moment as ``.NAME.<32 hexadecimal digits>.replaced``. A
process that is killed leaves them behind.
"""

from __future__ import annotations

import os
import re
import uuid
from contextlib import suppress
from pathlib import Path

from una_fast.errors import InputError
from una_fast.storage.manifest import MANIFEST, Manifest, find_manifest

LEFTOVER = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}\.(?:partial|replaced)", re.DOTALL)


def partial_name(folder: Path) -> Path:
    """A new name beside `folder`, for its content while that is written."""
    return folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.partial")


def leftovers(folder: Path, suffix: str = "") -> list[Path]:
    """The paths beside `folder` that have the names above; the processes that made them may be alive or dead."""
    with suppress(OSError):
        found = [path for path in folder.parent.iterdir() if path.name.endswith(suffix)]
        matches = [LEFTOVER.fullmatch(path.name) for path in found]
        return [path for path, m in zip(found, matches, strict=True) if m and m["name"] == folder.name]
    return []


def check_replaceable(folder: Path, kind: str) -> None:
    """Refuse to replace a folder that holds what una_fast did not write, or another kind of content.

    Raises:
        InputError: with the first entry that would be deleted.
        OSError: the folder cannot be read.
    """
    while True:
        manifest = find_manifest(folder)
        try:
            foreign = _foreign(folder, manifest)
        except FileNotFoundError:
            return
        if find_manifest(folder) == manifest:  # else another process has saved there meanwhile
            break
    if foreign:
        raise InputError(
            f"{folder}: holds {foreign[0]!r}, which saving here would delete; give a new folder, or empty this one"
        )
    if manifest and manifest.kind != kind:
        raise InputError(f"{folder}: holds a saved {manifest.kind!r}, not a {kind!r}; give another folder")


def delete_saved(folder: Path) -> list[str]:
    """Delete what una_fast wrote of `folder`, and the folder itself if nothing else is in it.

    The manifest goes last, so that a deletion that was cut short can be taken up again. Returns the names of the
    entries that are not una_fast's and stay.
    """
    manifest = find_manifest(folder)
    with suppress(OSError):  # another process may be deleting it too
        for entry in os.scandir(folder):
            if _is_own_folder(entry, manifest):
                delete_saved(Path(entry.path))
            elif entry.name != MANIFEST and _is_own_file(entry, folder, manifest):
                with suppress(OSError):
                    Path(entry.path).unlink()
        remaining = {path.name for path in folder.iterdir()} - {MANIFEST}
        if remaining:
            return sorted(remaining)
        (folder / MANIFEST).unlink(missing_ok=True)
        folder.rmdir()
    return []


def _foreign(folder: Path, manifest: Manifest | None) -> list[str]:
    """The names of the entries of `folder` that una_fast did not write, in order."""
    return sorted(
        entry.name
        for entry in os.scandir(folder)
        if not (_is_own_folder(entry, manifest) or _is_own_file(entry, folder, manifest))
    )


def _is_own_file(entry: os.DirEntry[str], folder: Path, manifest: Manifest | None) -> bool:
    if not entry.is_file(follow_symlinks=False):
        return False
    if manifest is not None:
        return entry.name in manifest.files
    # a folder whose process was killed before the manifest was complete
    return bool(LEFTOVER.fullmatch(folder.name)) and (entry.name == MANIFEST or entry.name.endswith(".npy"))


def _is_own_folder(entry: os.DirEntry[str], manifest: Manifest | None) -> bool:
    """True for a folder that belongs to the one it lies in and holds only what una_fast wrote."""
    if manifest is None or not entry.is_dir(follow_symlinks=False):
        return False
    part = find_manifest(Path(entry.path))
    if not LEFTOVER.fullmatch(entry.name) and (part is None or part.part_of != manifest.seal):
        return False
    try:
        return not _foreign(Path(entry.path), part)
    except FileNotFoundError:  # another process has just given its complete folder the final name
        return True
