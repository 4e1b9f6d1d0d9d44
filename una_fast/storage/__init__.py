"""Files that appear whole or not at all, whatever stops the process, and folders of memory-mapped arrays."""

from una_fast.storage.array_folder import (
    cached_arrays,
    check_array_folder,
    is_saved,
    load_arrays,
    resolved,
    save_arrays,
)

__all__ = ["cached_arrays", "check_array_folder", "is_saved", "load_arrays", "resolved", "save_arrays"]
