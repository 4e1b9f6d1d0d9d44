"""Groups of runs -> one HTML page without a script, a font or an image from elsewhere."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from train.report.charts import colour
from train.report.figures import (
    dev_figure,
    group_legend,
    loss_figures,
    scatter_figures,
    score_names,
    scores_figure,
)  # fmt: skip
from train.report.runs import Group, RunRecord, Spread, differing_settings, group_runs, title
from train.report.samples import Sample, samples_or_reason
from train.report.style import STYLE

MAIN_SETTINGS = ("model", "corpus", "batch_size", "max_length", "max_steps", "epochs", "learning_rate", "loss")


def make_page(runs: Sequence[RunRecord], n_samples: int = 6) -> str:
    """The whole page."""
    groups = group_runs(runs)
    name = f"{len(runs)} run{'s' if len(runs) > 1 else ''} of una_fast"
    curves = f"{group_legend(groups)}<div class='figures'>{dev_figure(groups)}{loss_figures(groups)}</div>"
    sections = [
        _section("Scores", _scores(groups)),
        _section("Training", curves),
        _section("Similarity against gold score", f"<div class='figures'>{scatter_figures(groups)}</div>"),
        _section("Negatives", _sample_blocks(groups, n_samples)),
        _section("Settings that differ", _settings_table(groups)),
        _section("Each run", _each_run(groups)),
    ]
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<link rel='icon' href='data:,'><title>{name}</title><style>{STYLE}</style></head>"
        f"<body><h1>{name}</h1>{_lede(runs)}{_tiles(groups)}{''.join(sections)}</body></html>\n"
    )


def _section(name: str, body: str) -> str:
    return f"<section><h2>{name}</h2>{body}</section>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already; the head is text."""
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<div class='wide'><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def _lede(runs: Sequence[RunRecord]) -> str:
    """What all runs have in common, in a line; versions and machine where they are recorded."""
    differing = differing_settings(runs)
    shared = [
        f"{name.replace('_', ' ')} {_short(runs[0].settings[name], parts=2 if name == 'model' else 1)}"
        for name in MAIN_SETTINGS
        if name not in differing and runs[0].settings.get(name) not in (None, "", [])
    ]
    versions = runs[0].summary.get("versions", {})
    shared += [f"{name} {versions[name]}" for name in ("una_fast", "torch") if versions.get(name, "not")[0].isdigit()]
    return f"<p class='note'>{html.escape(' · '.join(shared))}</p>"


def _short(value: Any, parts: int = 1) -> str:
    """A setting as a person would say it: a path by its last parts."""
    values = value if isinstance(value, list) else [value]
    return ", ".join("/".join(Path(one).parts[-parts:]) if isinstance(one, str) else str(one) for one in values)


def _tiles(groups: Sequence[Group]) -> str:
    """The main score of each group, large: the STS average where all have one, else the dev score."""
    every = [group.spreads() for group in groups]
    main = next((name for name in ("STS average", "stsb_dev") if all(name in spreads for spreads in every)), None)
    if main is None:
        return ""
    tiles = [
        f"<div class='tile' style='border-color:{colour(i)}'>{html.escape(group.label)}"
        f"<b>{_value(spreads[main])}</b><small>{title(main)}, {_count(spreads[main])}</small></div>"
        for i, (group, spreads) in enumerate(zip(groups, every, strict=True))
    ]
    return f"<div class='tiles'>{''.join(tiles)}</div>"


def _count(spread: Spread) -> str:
    return "one seed" if spread.n == 1 else f"mean ± deviation of {spread.n} seeds"


def _value(spread: Spread) -> str:
    text = f"{100 * spread.mean:.2f}"
    return text if math.isnan(spread.deviation) else f"{text} <small>± {100 * spread.deviation:.2f}</small>"


def _name(group: Group, number: int) -> str:
    return f"<i style='background:{colour(number)}'></i>{html.escape(group.label)}"


def _scores(groups: Sequence[Group]) -> str:
    """The figure of all scores, and the table of mean ± deviation with the best in bold."""
    spreads = [group.spreads() for group in groups]
    names = [name for name in score_names(groups) if name != "stsb_dev_last"]
    if not names:
        return "<p class='none'>no run has a score yet</p>"
    best = {name: max(spread[name].mean for spread in spreads if name in spread) for name in names}

    def cell(name: str, spread: dict[str, Spread]) -> str:
        if name not in spread:
            return "-"
        strong = len(groups) > 1 and spread[name].mean == best[name]
        return f"<span class='best'>{_value(spread[name])}</span>" if strong else _value(spread[name])

    rows = [
        [_name(group, i), str(len(group.runs)), *(cell(name, spread) for name in names)]
        for i, (group, spread) in enumerate(zip(groups, spreads, strict=True))
    ]
    note = "Spearman (of transfer tasks accuracy) × 100, mean ± standard deviation of the sample (n - 1) over seeds."
    return f"{scores_figure(groups)}{_table(['', 'seeds', *map(title, names)], rows)}<p class='note'>{note}</p>"


def _settings_table(groups: Sequence[Group]) -> str:
    names = differing_settings([group.runs[0] for group in groups])
    if not names:
        return "<p class='none'>none but the seed and where the runs were made</p>"
    rows = [
        [_name(group, i), *(html.escape(_short(group.runs[0].settings.get(name, "-"))) for name in names)]
        for i, group in enumerate(groups)
    ]
    return _table(["", *names], rows)


def _each_run(groups: Sequence[Group]) -> str:
    """Every score of every run, its speed, and all that it recorded."""
    names = score_names(groups)
    rows = [
        [
            f"<i style='background:{colour(i)}'></i>{html.escape(run.name)}",
            html.escape(str(run.seed)),
            *(f"{100 * run.scores[name]:.2f}" if name in run.scores else "-" for name in names),
            _speed(run),
        ]
        for i, group in enumerate(groups)
        for run in group.runs
    ]
    summaries = "".join(
        f"<details><summary>{html.escape(run.name)}, all that it recorded</summary>"
        f"<pre>{html.escape(json.dumps(run.summary, indent=1, ensure_ascii=False))}</pre></details>"
        for group in groups
        for run in group.runs
    )
    return f"{_table(['', 'seed', *map(title, names), 'sentences/s'], rows)}<p></p>{summaries}"


def _speed(run: RunRecord) -> str:
    """Median sentences a second."""
    speeds = sorted(step.sentences_per_second for step in run.steps if math.isfinite(step.sentences_per_second))
    return f"{speeds[len(speeds) // 2]:,.0f}" if speeds else "-"


def _sample_blocks(groups: Sequence[Group], n_samples: int) -> str:
    blocks = []
    for i, group in enumerate(groups):
        samples = samples_or_reason(group.runs[0], n_samples)
        if isinstance(samples, str):
            body = f"<p class='none'>{html.escape(samples)}</p>"
        else:
            body = "".join(map(_sample, samples))
        blocks.append(f"<h3>{_name(group, i)}</h3>{body}")
    return "".join(blocks)


def _sample(sample: Sample) -> str:
    """A sentence above its negative: words taken out are struck through, words put in are marked."""
    pairs = list(zip(sample.words, sample.negative, strict=True))
    before = " ".join(f"<del>{html.escape(a)}</del>" if a != b else html.escape(a) for a, b in pairs)
    after = " ".join(f"<mark>{html.escape(b)}</mark>" if a != b else html.escape(b) for a, b in pairs)
    replaced = sum(a != b for a, b in pairs)
    about = f"row {sample.row:,}, {replaced} of {len(pairs)} words replaced"
    return f"<div class='sample'><p>{before}</p><p>{after}</p><small>{about}</small></div>"
