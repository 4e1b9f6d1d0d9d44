"""`python -m train.report RUN...`: one or several runs as one HTML page that needs no other file and no network.

records (a folder -> a record), runs (folders -> groups over seeds) and baseline (groups -> differences) read; curves
(points -> points) and charts (points -> plotly's figures) draw; figures, tables and samples make the parts of page,
and page.js and page.css show them.
"""
