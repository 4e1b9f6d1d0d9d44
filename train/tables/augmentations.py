"""Table A3: other augmentations, all as positives, with BERT and without negatives."""

from typing import Any

from train.tables.kind import BACK_TRANSLATION, PARAPHRASE, Row, Table, sts_row, trained


def _row(name: str, *figures: float, texts: str = "", **settings: Any) -> Row:
    return sts_row(name, trained(texts=texts, augment="none", **settings), *figures)


TABLE = Table(
    "augmentations",
    "A3",
    "Augmentations of texts and of embeddings",
    (
        _row("SimCSE", 0.6904, 0.7952, 0.7303, 0.8019, 0.7815, 0.7616, 0.7116, 0.7532),
        _row(
            "EDA synonym replacement",
            *(0.6118, 0.7106, 0.6590, 0.7179, 0.7424, 0.6623, 0.6218, 0.6751),
            positives="eda-synonym",
        ),
        _row(
            "EDA random insert",
            *(0.6594, 0.7402, 0.7039, 0.7698, 0.7543, 0.7287, 0.7200, 0.7252),
            positives="eda-insert",
        ),
        _row(
            "EDA random swap",
            *(0.6850, 0.7808, 0.7212, 0.7830, 0.7767, 0.7643, 0.6984, 0.7442),
            positives="eda-swap",
        ),
        _row(
            "EDA random delete",
            *(0.6719, 0.7842, 0.7147, 0.7868, 0.7872, 0.7641, 0.6916, 0.7429),
            positives="eda-delete",
        ),
        _row(
            "back-translation",
            *(0.6876, 0.7510, 0.7072, 0.7933, 0.7802, 0.7618, 0.7034, 0.7406),
            texts=BACK_TRANSLATION,
        ),
        _row(
            "paraphrasing",
            *(0.7003, 0.7978, 0.7531, 0.8253, 0.7908, 0.7856, 0.7165, 0.7671),
            texts=PARAPHRASE,
        ),
        _row(
            "MODALS interpolation",
            *(0.7055, 0.8137, 0.7472, 0.8104, 0.7852, 0.7725, 0.7064, 0.7630),
            noise="interpolation",
        ),
        _row(
            "MODALS extrapolation",
            *(0.6817, 0.7913, 0.7471, 0.8136, 0.7905, 0.7824, 0.7124, 0.7599),
            noise="extrapolation",
        ),
        _row(
            "MODALS linear sampling",
            *(0.6923, 0.8114, 0.7381, 0.8090, 0.7837, 0.7745, 0.6981, 0.7582),
            noise="linear",
        ),
        _row(
            "MODALS Gaussian noise",
            *(0.6913, 0.8143, 0.7422, 0.8095, 0.7788, 0.7760, 0.7180, 0.7614),
            noise="gaussian",
        ),
        _row(
            "PCA jittering",
            *(0.6848, 0.7893, 0.7426, 0.8141, 0.7755, 0.7854, 0.7200, 0.7588),
            noise="pca-jitter",
        ),
    ),
)
