"""What scores are computed with: pure functions of embeddings, similarities and labels.

Nothing here knows tasks, files or models: the modules import only each other.
"""
