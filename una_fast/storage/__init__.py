"""Files that appear whole or not at all, whatever stops the process, and folders of memory-mapped arrays."""
