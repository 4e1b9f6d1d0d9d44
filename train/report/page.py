"""Records, charts and samples -> one HTML page without a script, a font or an image from elsewhere."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from train.report.charts import COLOURS, Line, Point, legend, line_chart, scatter
from train.report.runs import EVALUATION, Group, RunRecord, Spread, differing_settings, group_runs, title
from train.report.samples import Sample, samples_or_reason

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --soft: #666; --rule: #ddd; --paper: #fff; --mark: #ffe3b3; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --soft: #a0a0a0; --rule: #3a3a3a; --paper: #161616; --mark: #5b4112; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 1080px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { font-weight: 600; } .best { font-weight: 700; } .none, .note { color: var(--soft); }
svg { max-width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; fill: var(--soft); }
.line { fill: none; stroke-width: 1.6; } .axis { fill: none; stroke: var(--soft); }
.grid { stroke: var(--rule); } .row { display: flex; flex-wrap: wrap; gap: 1rem; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; padding: 0; margin: .2rem 0; }
.legend svg { margin-right: .4rem; vertical-align: middle; }
.sample { margin: .6rem 0; } .sample p { margin: 0; }
mark { background: var(--mark); color: inherit; padding: 0 .15em; border-radius: 3px; }
del { color: var(--soft); } summary { cursor: pointer; } pre { overflow-x: auto; font-size: 12px; }
"""
SMOOTH = 0.9  # weight of the past in the loss curves' moving mean


def make_page(runs: Sequence[RunRecord], n_samples: int = 6) -> str:
    """The whole page."""
    groups = group_runs(runs)
    colours = {run.name: COLOURS[i % len(COLOURS)] for i, group in enumerate(groups) for run in group.runs}
    title = f"{len(runs)} run{'s' if len(runs) > 1 else ''} of una_fast"
    sections = [
        _section("Scores", _score_tables(groups)),
        _section("Dev score", _dev_chart(runs, colours)),
        _section("Loss", _loss_chart(runs, colours)),
        _section("Settings that differ", _settings_table(runs)),
        _section("Similarity against gold score", _scatters(groups, colours)),
        _section("Negatives", _sample_blocks(groups, n_samples)),
        _section("Everything recorded", _summaries(runs)),
    ]
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<link rel='icon' href='data:,'><title>{title}</title><style>{STYLE}</style></head>"
        f"<body><h1>{title}</h1>{''.join(sections)}</body></html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already; the head is text."""
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<div class='wide'><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def _score_tables(groups: Sequence[Group]) -> str:
    """Mean ± deviation of each group, the best in bold, then every run."""
    spreads = [group.spreads() for group in groups]
    names = list(dict.fromkeys(name for spread in spreads for name in spread))
    if not names:
        return "<p class='none'>no run has a score yet</p>"
    best = {name: max(spread[name].mean for spread in spreads if name in spread) for name in names}

    def cell(name: str, spread: dict[str, Spread]) -> str:
        if name not in spread:
            return "-"
        strong = len(groups) > 1 and spread[name].mean == best[name]
        return f"<span class='best'>{spread[name]}</span>" if strong else str(spread[name])

    titles = [title(name) for name in names]
    head = ["settings", "seeds", *titles]
    rows = [
        [html.escape(group.label), str(len(group.runs)), *(cell(name, spread) for name in names)]
        for group, spread in zip(groups, spreads, strict=True)
    ]
    alone = [
        [
            html.escape(run.name),
            html.escape(str(run.seed)),
            *(f"{100 * run.scores[name]:.2f}" if name in run.scores else "-" for name in names),
            _speed(run),
        ]
        for group in groups
        for run in group.runs
    ]
    note = "<p class='note'>Spearman and accuracy x 100; mean ± standard deviation over seeds (n - 1).</p>"
    each = _table(["run", "seed", *titles, "sentences/s"], alone)
    return f"{_table(head, rows)}{note}<h3>Each run</h3>{each}"


def _speed(run: RunRecord) -> str:
    """Median sentences a second."""
    speeds = sorted(step.sentences_per_second for step in run.steps if math.isfinite(step.sentences_per_second))
    return f"{speeds[len(speeds) // 2]:,.0f}" if speeds else "-"


def _dev_chart(runs: Sequence[RunRecord], colours: dict[str, str]) -> str:
    lines = [Line(run.name, colours[run.name], [(s, 100 * v) for s, v in run.dev]) for run in runs]
    return line_chart(lines, "steps", "dev Spearman x 100") + legend([(n.name, n.colour, False) for n in lines])


def _loss_chart(runs: Sequence[RunRecord], colours: dict[str, str]) -> str:
    lines = []
    for run in runs:
        for negatives in (False, True):
            points: list[Point] = [(step.step, step.loss) for step in run.steps if step.negatives == negatives]
            if points:
                name = f"{run.name}, {'with negatives' if negatives else 'plain steps'}"
                lines.append(Line(name, colours[run.name], smooth(points), dashed=negatives))
    note = f"<p class='note'>Moving mean (weight {SMOOTH} on the past); dashed: steps with negatives.</p>"
    return line_chart(lines, "steps", "loss") + legend([(n.name, n.colour, n.dashed) for n in lines]) + note


def smooth(points: Sequence[Point], weight: float = SMOOTH) -> list[Point]:
    """Exponential moving mean of finite values, without the pull of a first value of 0."""
    result = []
    total = norm = 0.0
    for x, y in points:
        if math.isfinite(y):
            total, norm = weight * total + y, weight * norm + 1
            result.append((x, total / norm))
    return result


def _settings_table(runs: Sequence[RunRecord]) -> str:
    names = differing_settings(runs)
    if not names:
        return "<p class='none'>none but the seed and where the runs were made</p>"
    rows = [
        [html.escape(run.name), *(html.escape(str(run.settings.get(name, "-"))) for name in [*names, "seed"])]
        for run in runs
    ]
    return _table(["run", *names, "seed"], rows)


def _scatters(groups: Sequence[Group], colours: dict[str, str]) -> str:
    """For the first run of each group whose evaluation kept its pairs, the dev or test pairs of STS-B or another."""
    plots = []
    for group in groups:
        for run in group.runs:
            if found := _pairs(run):
                task, points = found
                plot = scatter(points, colours[run.name], f"gold score, {task}", "cosine similarity")
                plots.append(f"<div><h3>{html.escape(run.name)}</h3>{plot}</div>")
                break
    command = f"python -m train.evaluate --model RUN/best --pairs --json RUN/{EVALUATION}"
    missing = f"<p class='none'>no run kept its pairs: <code>{command}</code> does</p>"
    return f"<div class='row'>{''.join(plots)}</div>" if plots else missing


def _pairs(run: RunRecord) -> tuple[str, list[Point]] | None:
    tasks = (run.evaluation or {}).get("sts", {})
    for name in ("STSBenchmark", *tasks):
        if "similarity" in tasks.get(name, {}):
            return name, list(zip(tasks[name]["gold"], tasks[name]["similarity"], strict=True))
    return None


def _sample_blocks(groups: Sequence[Group], n_samples: int) -> str:
    blocks = []
    for group in groups:
        samples = samples_or_reason(group.runs[0], n_samples)
        if isinstance(samples, str):
            body = f"<p class='none'>{html.escape(samples)}</p>"
        else:
            body = "".join(map(_sample, samples))
        blocks.append(f"<h3>{html.escape(group.runs[0].name)}</h3>{body}")
    return "".join(blocks)


def _sample(sample: Sample) -> str:
    """A sentence above its negative: words taken out are struck through, words put in are marked."""
    pairs = list(zip(sample.words, sample.negative, strict=True))
    before = " ".join(f"<del>{html.escape(a)}</del>" if a != b else html.escape(a) for a, b in pairs)
    after = " ".join(f"<mark>{html.escape(b)}</mark>" if a != b else html.escape(b) for a, b in pairs)
    return f"<div class='sample'><p>{before}</p><p>{after}</p></div>"


def _summaries(runs: Sequence[RunRecord]) -> str:
    return "".join(
        f"<details><summary>{html.escape(run.name)}</summary><pre>{html.escape(_dump(run.summary))}</pre></details>"
        for run in runs
    )


def _dump(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False)
