"""SentEval's files -> tasks -> distinct sentences -> embeddings -> scores -> a table with its protocol.

Each module is one step of that way and imports only from the steps before it. `train.evaluation.tasks.sts` and
`train.evaluation.tasks.transfer` hold the two kinds of task; `train.evaluate` is the command.
"""
