"""Table 1: paraphrasing and UNA, with BERT and with RoBERTa."""

from train.tables.kind import BERT, PARAPHRASE, ROBERTA, Table, sts_row, trained

PLAIN = {"augment": "none"}

TABLE = Table(
    "main",
    "1",
    "UNA and paraphrasing with BERT and RoBERTa",
    (
        sts_row("BERT", trained(BERT, **PLAIN), 0.6904, 0.7952, 0.7303, 0.8019, 0.7815, 0.7616, 0.7116, 0.7532),
        sts_row("BERT + UNA", trained(BERT), 0.6802, 0.8226, 0.7306, 0.8200, 0.7908, 0.7760, 0.7093, 0.7614),
        sts_row(
            "BERT + paraphrasing",
            trained(BERT, PARAPHRASE, **PLAIN),
            *(0.7003, 0.7978, 0.7531, 0.8253, 0.7908, 0.7856, 0.7165, 0.7671),
        ),
        sts_row(
            "BERT + paraphrasing + UNA",
            trained(BERT, PARAPHRASE),
            *(0.6939, 0.8158, 0.7616, 0.8304, 0.7910, 0.8030, 0.7412, 0.7767),
        ),
        sts_row("RoBERTa", trained(ROBERTA, **PLAIN), 0.6907, 0.8175, 0.7336, 0.8193, 0.7974, 0.7996, 0.6961, 0.7649),
        sts_row("RoBERTa + UNA", trained(ROBERTA), 0.7075, 0.8155, 0.7343, 0.8261, 0.8053, 0.8021, 0.6808, 0.7674),
        sts_row(
            "RoBERTa + paraphrasing",
            trained(ROBERTA, PARAPHRASE, **PLAIN),
            *(0.6962, 0.8162, 0.7442, 0.8321, 0.8000, 0.8128, 0.7362, 0.7768),
        ),
        sts_row(
            "RoBERTa + paraphrasing + UNA",
            trained(ROBERTA, PARAPHRASE),
            *(0.7095, 0.8188, 0.7493, 0.8334, 0.8092, 0.8189, 0.7352, 0.7820),
        ),
    ),
)
