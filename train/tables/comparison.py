"""Table A8: other encoders of sentences, as published.

Sources of the names and poolings:
- SCD: the README of SAP-samples/acl2022-self-contrastive-decorrelation on GitHub, raw [CLS].
- Mirror-BERT: the README of cambridgeltl/mirror-bert, the two models with drophead, whose averages there (75.16 and
  76.67) are near the printed ones; mean pooling for BERT, as its page on the hub says, and [CLS] for RoBERTa, as in the
  README's own evaluation.
- DiffCSE: the README of voidism/DiffCSE, the models for STS, raw [CLS].
- DCLR and AugCSE: neither RUCAIBox/DCLR nor PootieT/AugCSE names a model on the hub; --checkpoints takes a folder.
- First-last average and whitening: SimCSE's table of results, which these figures are from, and SimCSE's names.
"""

from train.tables.kind import BERT, PARAPHRASE, ROBERTA, Checkpoint, Table, sts_row, trained

FIRST_LAST, CLS, MEAN = "avg_first_last", "cls_before_pooler", "avg"

TABLE = Table(
    "comparison",
    "A8",
    "Other encoders of sentences",
    (
        sts_row(
            "BERT first-last avg.",
            Checkpoint(BERT, FIRST_LAST),
            *(0.3970, 0.5938, 0.4967, 0.6603, 0.6619, 0.5387, 0.6206, 0.5670),
        ),
        sts_row(
            "BERT whitening",
            Checkpoint(BERT, FIRST_LAST, whiten=True),
            *(0.5783, 0.6690, 0.6090, 0.7508, 0.7131, 0.6824, 0.6373, 0.6628),
        ),
        sts_row(
            "SCD-BERT",
            Checkpoint("sap-ai-research/BERT-base-uncased-SCD-ACL2022", CLS),
            *(0.6694, 0.7803, 0.6989, 0.7873, 0.7623, 0.7630, 0.7318, 0.7419),
        ),
        sts_row(
            "Mirror-BERT",
            Checkpoint("cambridgeltl/mirror-bert-base-uncased-sentence-drophead", MEAN),
            *(0.691, 0.811, 0.730, 0.819, 0.757, 0.780, 0.691, 0.754),
        ),
        sts_row("DCLR-BERT", Checkpoint("", "auto"), 0.7081, 0.8373, 0.7511, 0.8256, 0.7844, 0.7831, 0.7159, 0.7722),
        sts_row("AugCSE-BERT", Checkpoint("", "auto"), 0.7140, 0.8393, 0.7559, 0.8359, 0.7961, 0.7961, 0.7219, 0.7798),
        sts_row(
            "DiffCSE-BERT",
            Checkpoint("voidism/diffcse-bert-base-uncased-sts", CLS),
            *(0.7228, 0.8443, 0.7647, 0.8390, 0.8054, 0.8059, 0.7123, 0.7849),
        ),
        sts_row(
            "Ours-BERT",
            trained(BERT, PARAPHRASE),
            *(0.6939, 0.8158, 0.7616, 0.8304, 0.7910, 0.8030, 0.7412, 0.7767),
        ),
        sts_row(
            "RoBERTa first-last avg.",
            Checkpoint(ROBERTA, FIRST_LAST),
            *(0.4088, 0.5874, 0.4907, 0.6563, 0.6148, 0.5855, 0.6163, 0.5657),
        ),
        sts_row(
            "RoBERTa whitening",
            Checkpoint(ROBERTA, FIRST_LAST, whiten=True),
            *(0.4699, 0.6324, 0.5723, 0.7136, 0.6899, 0.6136, 0.6291, 0.6173),
        ),
        sts_row(
            "SCD-RoBERTa",
            Checkpoint("sap-ai-research/RoBERTa-base-SCD-ACL2022", CLS),
            *(0.6353, 0.7779, 0.6979, 0.8021, 0.7729, 0.7655, 0.7210, 0.7389),
        ),
        sts_row(
            "Mirror-RoBERTa",
            Checkpoint("cambridgeltl/mirror-roberta-base-sentence-drophead", CLS),
            *(0.666, 0.827, 0.740, 0.824, 0.797, 0.796, 0.697, 0.764),
        ),
        sts_row("DCLR-RoBERTa", Checkpoint("", "auto"), 0.7001, 0.8308, 0.7509, 0.8366, 0.8106, 0.8186, 0.7033, 0.7787),
        sts_row(
            "AugCSE-RoBERTa", Checkpoint("", "auto"), 0.6930, 0.8217, 0.7349, 0.8182, 0.8140, 0.8086, 0.6877, 0.7683
        ),
        sts_row(
            "DiffCSE-RoBERTa",
            Checkpoint("voidism/diffcse-roberta-base-sts", CLS),
            *(0.7005, 0.8343, 0.7549, 0.8281, 0.8212, 0.8238, 0.7119, 0.7821),
        ),
        sts_row(
            "Ours-RoBERTa",
            trained(ROBERTA, PARAPHRASE),
            *(0.7095, 0.8188, 0.7493, 0.8334, 0.8092, 0.8189, 0.7352, 0.7820),
        ),
    ),
)
