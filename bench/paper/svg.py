"""Draw a figure as SVG, for papers."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from una_fast.imports import naming_extras

with naming_extras():
    import matplotlib as mpl
    from matplotlib.figure import Figure

FIXED: Any = {"svg.hashsalt": "una_fast", "svg.fonttype": "none", "font.size": 9}  # equal figures give equal bytes


def svg_of(figure: Mapping[str, Any]) -> str:
    """Return a figure as SVG. Its keys are "label" (of the y axis), "x_label" and "lines".

    "lines" has the format of `train.report.page.figures`.
    """
    with mpl.rc_context(FIXED):
        drawn = Figure(figsize=(5, 3.2), layout="constrained")
        axes = drawn.subplots()
        for line in figure["lines"]:
            style = "--" if line["dashed"] else "-"
            axes.plot(line["x"], line["y"], style, color=f"C{line['group'] % 10}", label=line["name"], linewidth=1.2)
        axes.set(xlabel=figure["x_label"], ylabel=figure["label"])
        axes.legend(fontsize=7)
        file = io.StringIO()
        drawn.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()
