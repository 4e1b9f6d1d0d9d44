"""The command `una-fast`: on top of everything, and imported by nothing."""
