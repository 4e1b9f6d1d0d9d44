"""Files that are written completely or not at all, whatever stops the process, and folders of memory-mapped arrays."""
