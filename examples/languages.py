"""Print negatives in five languages for sentences assembled from parts: python FILE [LANGUAGE ...]."""

import re
import sys
from itertools import product
from typing import Any

import una_fast


def arabic_words(text: str) -> list[str]:
    """Split into words and punctuation marks; the English word tokenizers leave ، ؛ ؟ attached to words."""
    return re.findall(r"[^\s،؛؟.:!«»()]+|[،؛؟.:!«»()]", text)


# language: options of build_index, the separator of the parts, and the choices for each part
LANGUAGES: dict[str, tuple[dict[str, Any], str, list[list[str]]]] = {
    "German": ({"word_tokenizer": "treebank"}, " ", [
        ["Die Bibliothekarin", "Mein Nachbar", "Der Stadtrat", "Die Forschungsgruppe", "Ein Geigenbauer",
         "Unsere Lehrerin", "Der Bahnhofsvorsteher", "Die Bürgermeisterin"],
        ["liest die Briefe", "sammelt alte Landkarten", "repariert das Uhrwerk", "plant die Umgehungsstraße",
         "beschreibt den Hochwasserschutz", "verkauft frische Erdbeeren", "übersetzt das Wörterbuch"],
        ["am Ufer des Flusses.", "im Winter.", "vor dem Rathaus.", "während der Mittagspause.", "ohne Hilfe.",
         "seit vielen Jahren.", "in der Nähe des Hafens.", "mit großer Geduld."],
    ]),
    "Japanese": ({"word_tokenizer": "fugashi"}, "", [
        ["私は", "姉は", "市長は", "研究者たちは", "図書館の司書は", "駅長は", "大工は", "先生は"],
        ["川のそばで", "冬に", "駅の前で", "昼休みに", "一人で", "朝早く", "港の近くで", "夜遅くまで"],
        ["古い手紙を", "新しい地図を", "短い論文を", "壊れた時計を", "重い辞書を", "小さな庭を", "長い橋を"],
        ["調べた。", "描いた。", "眺めた。", "探していた。"],
    ]),
    "Chinese": ({"word_tokenizer": "rjieba"}, "", [
        ["图书管理员", "我的邻居", "市长", "研究人员", "小提琴家", "火车站站长", "我们的老师", "木匠"],
        ["在河边", "冬天", "在市政府门前", "午休时", "独自", "清晨", "在港口附近", "晚上"],
        ["阅读", "研究", "描写", "收藏", "寻找"],
        ["旧信件。", "新地图。", "厚词典。", "老钟表。", "石桥的照片。", "海边的花园。"],
    ]),
    "Thai": ({"word_tokenizer": "pythainlp"}, "", [
        ["บรรณารักษ์", "เพื่อนบ้านของฉัน", "นายกเทศมนตรี", "นักวิจัย", "ช่างไม้", "นายสถานี", "คุณครูของเรา"],
        ["อ่าน", "ศึกษา", "วาด", "เก็บรักษา", "มองดู"],
        ["จดหมายเก่า", "แผนที่ใหม่", "พจนานุกรมเล่มหนา", "นาฬิกาที่พัง", "สะพานหิน", "สวนริมทะเล"],
        ["ริมแม่น้ำ", "ในฤดูหนาว", "หน้าศาลากลาง", "ตอนพักเที่ยง", "ใกล้ท่าเรือ", "ตอนเช้าตรู่"],
    ]),
    "Arabic": ({"word_tokenizer": arabic_words}, " ", [
        ["جارنا القديم", "رئيس البلدية", "الباحث الشاب", "النجار الماهر", "مدير المحطة", "عازف الكمان"],
        ["يقرأ", "يدرس", "يرسم", "يحفظ", "يصف"],
        ["الرسائل القديمة", "الخريطة الجديدة", "القاموس الكبير", "الساعة المكسورة", "الجسر الحجري"],
        ["قرب النهر.", "في الشتاء.", "أمام البلدية.", "عند الظهر، بصبر كبير.", "في الصباح، أليس كذلك؟"],
    ]),
}  # fmt: skip


def negatives(language: str, n: int = 3) -> list[tuple[str, str]]:
    """Return (sentence, negative) for the first n of 100 evenly spaced sentences."""
    options, between, parts = LANGUAGES[language]
    index = una_fast.build_index([between.join(chosen) for chosen in product(*parts)], **options)
    una = una_fast.Augmenter(index, radius="40%", keep_punctuation=True)  # a larger corpus needs no radius
    rows = range(0, len(index), len(index) // 100)[:n]
    return list(zip((index[row] for row in rows), una.texts(rows), strict=True))


if __name__ == "__main__":
    for language in sys.argv[1:] or LANGUAGES:
        for sentence, negative in negatives(language):
            print(f"{sentence}\n  {negative}")
