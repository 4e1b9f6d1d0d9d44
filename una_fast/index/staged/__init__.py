"""An index built in stages that exchange files, within a given memory, on one machine or many.

read      what can only be read from its start (compressed files, iterables) becomes segments of documents
scan      a split of the corpus becomes rows of numbers of its own, and runs of its words and chunks, cut by hash
merge     the runs of one hash range, of all splits, become distinct strings with their counts and first places
rank      a range of ranks is sorted; ties stand by first place
label     the rank of each string of each run is written to files
number    the rows of a split are written with ranks in place of its own numbers
write     an array of the index is joined from its parts; then the arrays are moved into the folder

Every stage is a list of tasks, and every task writes one file that appears whole or not at all: a task that is run
twice, by a lost worker or after a restart, writes the same bytes.
"""
