"""`python -m train.paper TABLE --output FOLDER`: a table of the paper, with its figures beside the measured ones.

`tables` reads tables.yaml. `request` turns a command line into the rows that it asks for; `works` lists what measures
them, each a command of this package; `results` writes the table.
"""
