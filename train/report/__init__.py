"""`python -m train.report RUN...`: one or several runs as one HTML page that needs no other file and no network.

`records` reads the files of a run, `runs` groups runs over seeds and compares groups, `paper_tables` reads the tables
of train.paper, and `samples` makes negatives again. `figures` draws all of these, and `page` fills page.html with them.
"""
