"""The package's version, and the paper's citation for model cards."""

VERSION = "0.3.0"
CITATION = """@article{shu2024una,
    title = "Unsupervised hard Negative Augmentation for contrastive learning",
    author = "Shu, Yuxuan and Lampos, Vasileios",
    journal = "arXiv preprint arXiv:2401.02594",
    year = "2024",
}"""
