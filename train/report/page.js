// Draws each chart of the page with plotly in the colours of the page, and again when the reader's system turns dark.
"use strict";
const CONFIG = {
  responsive: true,
  displaylogo: false,
  // named one by one: plotly's own choice has a button that sends the chart to a server
  modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]],
};

// "var(--c0)" -> "#0072b2", "var(--c0, 15%)" -> "#0072b226"
function colour(name, style) {
  const [, variable, percent] = /^var\((--\w+)(?:, (\d+)%)?\)$/.exec(name);
  const alpha = percent ? Math.round(percent * 2.55).toString(16).padStart(2, "0") : "";
  return style.getPropertyValue(variable).trim() + alpha;
}

function draw() {
  const style = getComputedStyle(document.documentElement);
  const isColour = (key, value) => typeof value === "string" && /color$/.test(key) && value.startsWith("var(");
  for (const place of document.querySelectorAll(".chart")) {
    const spec = place.nextElementSibling.textContent;
    const chart = JSON.parse(spec, (key, value) => (isColour(key, value) ? colour(value, style) : value));
    const image = { format: "svg", filename: place.getAttribute("aria-label") };
    Plotly.react(place, chart.data, chart.layout, { ...CONFIG, toImageButtonOptions: image });
  }
}

draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
