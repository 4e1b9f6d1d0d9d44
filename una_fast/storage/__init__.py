"""Folders of memory-mapped arrays, and files that are written completely or not at all, whatever stops the process."""
