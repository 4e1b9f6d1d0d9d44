"""`python -m train.paper TABLE --output FOLDER`: a table of the paper, with its figures beside the measured ones.

`tables` reads tables.yaml and writes a table. `request` turns a command line into the cells that it asks for; `works`
lists what measures them, each a command of this package.
"""
