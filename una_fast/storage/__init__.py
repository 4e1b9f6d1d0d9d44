"""Folders of arrays: memory-mapped, checksummed, written whole or not at all.

A folder lists what it holds in its ``manifest.json``: one ``NAME.npy`` an array, with their checksums. A folder inside
it belongs to it when its own manifest says so (`save_arrays`, ``part_of``). Saving replaces what is listed, and nothing
else.

    manifest    the list of a folder's content, and the seal, a hash of that content
    files       one array in one file; every error becomes an InputError
    content     checks of arrays that compiled code uses as indices
    ownership   which entries of a folder una_fast wrote; only those are deleted
    place       gives a complete folder its name, in one step where the system can; repairs what a killed process left
    packs       several arrays in one file, read in slices: how the stages of a build exchange data
    verified    marks of folders that were checked on this machine, so that later processes need not read them again
    save, load  the public functions
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
