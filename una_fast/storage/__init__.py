"""Files that are whole or not there, and folders of arrays that all processes of a machine share.

A folder of arrays has a file for each array and, written last, ``manifest.json``, which lists them with their
checksums. So a process that is killed, a power cut or a full disk leaves the folder as it was before.

    files     a file that appears whole or not at all; checksums; locks
    folder    save_arrays, load_arrays, and cached_arrays: arrays that are made once and kept in a folder
"""

from una_fast.storage.folder import cached_arrays, check_own, is_saved, load_arrays, resolved, save_arrays

__all__ = ["cached_arrays", "check_own", "is_saved", "load_arrays", "resolved", "save_arrays"]
