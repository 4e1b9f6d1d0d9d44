"""SentEval's files -> tasks -> distinct sentences -> embeddings -> scores -> a table with its protocol.

`tasks/` holds the registry of tasks and a module for each kind of task; `similarity` and `classifier` measure;
`train.evaluate` is the command.
"""
