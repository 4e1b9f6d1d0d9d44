"""Folders of arrays: memory-mapped, checksummed, written whole or not at all.

A folder lists what it holds in its ``manifest.json``: one file an array, whose name has the checksum of its content. A
save adds files, then replaces the manifest in one step, then deletes the files that it does not list. So a reader
never finds a mixture, and what others put into the folder stays. A folder inside it belongs to it when its own manifest
says so (`save_arrays`, ``part_of``).

    manifest    the list of a folder's content, and the seal, a hash of that content
    files       files that appear whole or not at all; one array in one file; locks, so that one process at a time saves
    content     checks of arrays that compiled code uses as indices
    packs       several arrays in one file, read in slices: how the stages of a build exchange data
    save, load  the public functions, and the marks of folders that were verified on this machine
"""

from una_fast.storage.files import checked_path
from una_fast.storage.load import Saved, load_arrays
from una_fast.storage.manifest import is_saved, read_seal
from una_fast.storage.save import check_own, publish, resolved, save_arrays

__all__ = [
    "Saved",
    "check_own",
    "checked_path",
    "is_saved",
    "load_arrays",
    "publish",
    "read_seal",
    "resolved",
    "save_arrays",
]
