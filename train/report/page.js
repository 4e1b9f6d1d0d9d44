// Draws each chart of the page with plotly in the colours of the page, and again when the reader's system turns dark.
"use strict";
const CONFIG = {
  responsive: true,
  displaylogo: false,
  // named one by one: plotly's own choice has a button that sends the chart to a server
  modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]],
};

function draw() {
  const style = getComputedStyle(document.documentElement);
  const inked = (value) => value.replace(/^var\((--\w+)\)$/, (_, name) => style.getPropertyValue(name).trim());
  for (const place of document.querySelectorAll(".chart")) {
    const spec = place.nextElementSibling.textContent;
    const chart = JSON.parse(spec, (_, value) => (typeof value === "string" ? inked(value) : value));
    const image = { format: "svg", filename: place.getAttribute("aria-label") };
    Plotly.react(place, chart.data, chart.layout, { ...CONFIG, toImageButtonOptions: image });
  }
}

draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
