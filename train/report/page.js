// Draws each figure with plotly in the colours of the page, and again when its width or the colour scheme changes.
"use strict";
const CONFIG = {
  displaylogo: false,
  // listed one by one, because plotly's default has a button that sends the chart to a server
  modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]],
};
const DASHES = ["solid", "dash", "dot", "dashdot"];
const N_COLOURS = 7;

function draw(place) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const figure = JSON.parse(place.nextElementSibling.textContent);
  const traces = figure.lines.map((line) => ({
    x: line.x,
    y: line.y,
    name: line.name.replace(/&/g, "&amp;").replace(/</g, "&lt;"), // plotly reads texts as HTML
    mode: line.x.length > 50 ? "lines" : "lines+markers",
    line: {
      color: colour(`c${line.group % N_COLOURS}`),
      dash: DASHES[(Math.floor(line.group / N_COLOURS) + line.dashed) % DASHES.length],
      width: 1.8,
    },
    hovertemplate: "%{fullData.name}<br>step %{x:,.0f}: %{y:.4~g}<extra></extra>",
  }));
  const axis = { gridcolor: colour("rule"), zeroline: false, automargin: true };
  const last = Math.max(...traces.flatMap((trace) => trace.x));
  const steps = last <= 6 ? { dtick: 1 } : { nticks: 6 }; // no fractions of a step
  const titled = (text) => ({ title: { text, standoff: 8 } });
  const isLog = figure.label.startsWith("loss") && traces.every((trace) => trace.y.every((y) => y > 0));
  const scale = isLog ? { type: "log", dtick: "D2", tickformat: ".2~g" } : {};
  const layout = {
    xaxis: { ...axis, ...titled("optimiser step"), rangemode: "tozero", tickformat: ",d", ...steps },
    yaxis: { ...axis, ...titled(figure.label + (isLog ? ", log scale" : "")), ...scale },
    showlegend: false, // the page has one legend for all figures, which wraps on a phone
    hovermode: "closest",
    margin: { l: 48, r: 8, t: 28, b: 44 },
    font: { family: "system-ui, sans-serif", size: 12.5, color: colour("soft") },
    paper_bgcolor: colour("paper"),
    plot_bgcolor: colour("paper"),
    hoverlabel: { bgcolor: colour("card"), font: { color: colour("ink") } },
  };
  const image = { format: "svg", filename: figure.name };
  Plotly.react(place, traces, layout, { ...CONFIG, toImageButtonOptions: image });
}

const places = document.querySelectorAll(".chart");
const drawAll = () => places.forEach(draw);
drawAll();
const sizes = new ResizeObserver((changes) => changes.forEach((change) => Plotly.Plots.resize(change.target)));
places.forEach((place) => sizes.observe(place));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
