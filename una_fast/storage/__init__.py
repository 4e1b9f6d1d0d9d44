"""Folders of arrays: memory-mapped, checksummed, written whole or not at all.

A folder lists what it holds in its ``manifest.json``: one ``NAME.npy`` an array, with their checksums. A folder inside
it belongs to it when its own manifest says so (`save_arrays`, ``part_of``). Saving replaces what is listed, and nothing
else.

    manifest    what a folder lists, and the seal that tells one content from another
    files       one array in one file; every error becomes a sentence
    content     checks of what the arrays hold, for compiled code that indexes by it
    ownership   which entries of a folder una_fast wrote, and how only those are deleted
    place       puts a complete folder under its name, in one step where the system can; mends what a kill left
    packs       arrays in one file, read in slices: what the stages of a build hand on
    verified    what was read and checked once on this machine is not read again at every start of a process
    save, load  the two that everybody calls
"""

from una_fast.storage.files import checked_path
from una_fast.storage.load import Saved, load_arrays
from una_fast.storage.manifest import read_seal
from una_fast.storage.ownership import check_replaceable
from una_fast.storage.save import adopt_arrays, resolved, save_arrays

__all__ = [
    "Saved",
    "adopt_arrays",
    "check_replaceable",
    "checked_path",
    "load_arrays",
    "read_seal",
    "resolved",
    "save_arrays",
]
