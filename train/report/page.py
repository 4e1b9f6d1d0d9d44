"""Groups of runs -> one HTML page that needs no other file and no network."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from train.record.folder import EVALUATION
from train.report.baseline import Difference, differences, groups_with_baseline
from train.report.charts import colour
from train.report.figures import (
    cosine_figures,
    dev_figure,
    differences_figure,
    histogram_figures,
    loss_figures,
    scatter_figures,
    score_names,
    scores_figure,
)  # fmt: skip
from train.report.paper_tables import PaperTable, paper_sections
from train.report.records import STS_AVERAGE, RunRecord
from train.report.runs import Group, Spread, differing_settings, title
from train.report.samples import Sample, samples_or_reason
from train.report.tables import difference, named, runs_table, scores_table, settings_table, short, value
from train.report.untrusted import mapping
from una_fast.errors import InputError

HERE = Path(__file__).parent
MAIN_SETTINGS = ("model", "corpus", "batch_size", "max_length", "max_steps", "epochs", "learning_rate", "loss")
# makes the browser enforce that the page fetches nothing, even if a library tries to
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
SCORE_NOTE = (
    "Scores are × 100: Spearman correlation, and accuracy of transfer tasks. "
    "± is one standard deviation of the sample (n - 1) over the runs of a group."
)
PAIR_NOTE = (
    " A difference to the baseline is the mean ± standard deviation over the seeds that both have, "
    "or the difference of the means (unpaired) where they share no seed."
)
NO_PAIRS = (
    "<p class='none'>No run kept its scored pairs. <code>python -m train.ddp --evaluate FOLDER</code> keeps them, and "
    f"so does <code>python -m train.evaluate --model RUN/best --data FOLDER --pairs --json RUN/{EVALUATION}</code>.</p>"
)
NO_COSINES = "<p class='none'>No run recorded similarities of steps with negatives.</p>"


def plotly_script() -> str:
    """plotly.js, from plotly's package. InputError, with the command that installs it, if it is missing."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise InputError("the report draws with plotly: run `pip install 'una_fast[report]'`") from None
    return get_plotlyjs()


def make_page(
    runs: Sequence[RunRecord],
    n_samples: int = 6,
    baseline: Path | None = None,
    notes: list[str] | None = None,
    tables: Sequence[PaperTable] = (),
) -> str:
    """The whole page, as HTML.

    n_samples: negatives shown of each group.
    baseline: the folder of the runs that the others are compared with.
    tables: those of `train.paper`, which come first.
    notes: sentences about what was left out so far; those about files of the runs are added.

    Raises:
        InputError: plotly is missing, or the baseline holds no run or runs of several settings.
    """
    said = [] if notes is None else notes
    above = "".join(_section(heading, body) for heading, body in paper_sections(tables))
    if not runs:
        return _document("Tables of the paper", _left_out(said) + above)
    groups, marked = groups_with_baseline(runs, baseline, said)
    found = [differences(group, marked) if marked and group is not marked else {} for group in groups]
    said += [note for group in groups for run in group.runs for note in run.notes]
    curves = dev_figure(groups) + cosine_figures(groups) + loss_figures(groups)
    sections = [
        _section("Scores", _scores(groups, found)),
        _section("Training", f"<div class='figures'>{curves}</div>"),
        _section("Similarity of anchor, positive and negative", _figures(histogram_figures(groups), NO_COSINES)),
        _section("Similarity against gold score", _figures(scatter_figures(groups), NO_PAIRS)),
        _section("Negatives", _sample_blocks(groups, n_samples)),
        _section("Settings that differ", settings_table(groups)),
        _section("Each run", runs_table(groups, score_names(groups))),
    ]  # fmt: skip
    head = f"{_lede(groups)}{_tiles(groups, found, marked)}{_left_out(said)}"
    return _document(_name(groups), head + above + "".join(sections))


def _document(name: str, body: str) -> str:
    style, script = (HERE / "page.css").read_text("utf-8"), (HERE / "page.js").read_text("utf-8")
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<link rel='icon' href='data:,'><title>{html.escape(name)}</title><style>{style}</style></head>"
        f"<body><h1>{html.escape(name)}</h1>"
        "<noscript><p class='warning'>The charts are drawn by JavaScript; the tables hold their values.</p></noscript>"
        f"{body}<script>{plotly_script()}</script><script>{script}</script></body></html>\n"
    )


def _name(groups: Sequence[Group]) -> str:
    n_runs = sum(len(group.runs) for group in groups)
    if n_runs == 1:
        return f"Training run {groups[0].label}"
    return f"{n_runs} training runs" + (f" in {len(groups)} settings" if len(groups) > 1 else f": {groups[0].label}")


def _section(name: str, body: str) -> str:
    return f"<section><h2>{name}</h2>{body}</section>"


def _figures(body: str, otherwise: str) -> str:
    return f"<div class='figures'>{body}</div>" if body else otherwise


def _left_out(notes: Sequence[str]) -> str:
    items = "".join(f"<li>{html.escape(note)}</li>" for note in dict.fromkeys(notes))
    return f"<div class='warning note'>Not everything could be read:<ul>{items}</ul></div>" if items else ""


def _lede(groups: Sequence[Group]) -> str:
    """A line of the settings that all runs have in common, and of versions if they are recorded."""
    runs = [run for group in groups for run in group.runs]
    differing = differing_settings(runs)
    settings = {name: runs[0].settings.get(name) for name in MAIN_SETTINGS if name not in differing}
    shared = [
        f"{name.replace('_', ' ')} {short(setting, parts=2 if name == 'model' else 1)}"
        for name, setting in settings.items()
        if setting not in (None, "", [])
    ]
    versions = mapping(runs[0].summary.get("versions", {}), "versions", [])
    shared += [f"{name} {versions[name]}" for name in ("una_fast", "torch") if str(versions.get(name))[0].isdigit()]
    return f"<p class='note'>{html.escape(' · '.join(shared))}</p>"


def _tiles(groups: Sequence[Group], found: Sequence[Mapping[str, Difference]], marked: Group | None) -> str:
    """The main score of each group, large: the STS average if all groups have one, else the dev score."""
    every = [group.spreads() for group in groups]
    main = next((name for name in (STS_AVERAGE, "stsb_dev") if all(name in spreads for spreads in every)), None)
    if main is None:
        return ""
    tiles = [
        f"<div class='tile' style='border-color:{colour(i)}'><strong>{html.escape(group.label)}</strong>"
        f"<b>{value(every[i][main])}</b><p>{html.escape(title(main))}, {_count(every[i][main])}</p>"
        f"{_about(group, every[i], found[i].get(main), group is marked)}</div>"
        for i, group in enumerate(groups)
    ]
    return f"<div class='tiles'>{''.join(tiles)}</div>"


def _about(group: Group, spreads: Mapping[str, Spread], found: Difference | None, is_baseline: bool) -> str:
    """The lines below a tile's score: the difference to the baseline, and the dev score before and after training."""
    lines = ["the baseline"] if is_baseline else []
    lines += [f"{difference(found)} against the baseline"] if found else []
    if group.start is not None and "stsb_dev" in spreads:
        best = spreads["stsb_dev"].mean
        lines.append(f"dev {100 * group.start:.2f} before training, {100 * best:.2f} at best")
    return "".join(f"<p>{line}</p>" for line in lines)


def _count(spread: Spread) -> str:
    return "one run" if spread.n == 1 else f"mean ± deviation of {spread.n} runs"


def _scores(groups: Sequence[Group], found: Sequence[Mapping[str, Difference]]) -> str:
    """The figures of all scores and differences, and their table."""
    names = [name for name in score_names(groups) if name != "stsb_dev_last"]
    if not names:
        return "<p class='none'>No run has a score yet.</p>"
    note = SCORE_NOTE + (PAIR_NOTE if any(found) else "")
    shown = f"{scores_table(groups, names, found)}<p class='note'>{note}</p>"
    return f"{shown}{scores_figure(groups)}{differences_figure(groups, found)}"


def _sample_blocks(groups: Sequence[Group], n_samples: int) -> str:
    blocks = []
    for i, group in enumerate(groups):
        samples = samples_or_reason(group.runs[0], n_samples)
        if isinstance(samples, str):
            body = f"<p class='none'>{html.escape(samples)}</p>"
        else:
            body = "".join(map(_sample, samples))
        blocks.append(f"<h3>{named(group.label, i)}</h3>{body}")
    return "".join(blocks)


def _sample(sample: Sample) -> str:
    """A sentence above its negative: words taken out are struck through, words put in are marked."""
    pairs = list(zip(sample.words, sample.negative, strict=True))
    before = " ".join(f"<del>{html.escape(a)}</del>" if a != b else html.escape(a) for a, b in pairs)
    after = " ".join(f"<mark>{html.escape(b)}</mark>" if a != b else html.escape(b) for a, b in pairs)
    replaced = sum(a != b for a, b in pairs)
    about = f"row {sample.row:,}, {replaced} of {len(pairs)} words replaced"
    return f"<div class='sample'><p>{before}</p><p>{after}</p><small>{about}</small></div>"
