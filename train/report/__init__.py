"""`python -m train.report RUN...`: one or several runs as one HTML page that needs no other file and no network.

`records` reads the files of a run, `runs` groups runs over seeds, `paired` compares groups, and `samples` makes
negatives again. `figures` draws the curves, and `page` fills page.html with all of them.
"""
