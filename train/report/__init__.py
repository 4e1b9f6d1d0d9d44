"""`python -m train.report RUN...`: one or several runs as one HTML page that needs nothing but itself.

runs (folders -> records and groups over seeds) -> charts (numbers -> SVG), figures (groups -> charts) and samples
(negatives) -> page (HTML).
"""
