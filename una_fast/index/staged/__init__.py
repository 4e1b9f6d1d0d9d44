"""An index built in stages that exchange files, within a given memory, on one machine or many.

read      the digest of each file; what can only be read from its start (compressed, iterables) becomes segments
scan      a split of the corpus becomes rows of numbers of its own, and its words and chunks, cut by hash
merge     the strings of one hash range, of all splits, become distinct strings with their counts and first places
rank      a range of ranks is sorted; ties stand by first place
label     the rank of each string of a hash range in each split is written to files
number    the ids of the strings of a split are gathered
write     an array of the index is joined from its parts; then the arrays are moved into the folder

Every stage is a list of tasks, and every task writes one file that appears whole or not at all: a task that is run
twice, by a lost worker or after a restart, writes the same bytes.
"""
