"""`python -m train.report RUN...`: one or several runs as one HTML page that needs no other file and no network.

The modules records (a folder -> a record), runs (folders -> groups over seeds) and baseline (groups -> differences)
read the runs. curves (points -> points) and charts (points -> plotly's figures) draw them. figures, tables and samples
make the parts of the page, which page assembles and page.js and page.css display.
"""
