"""The look of the page: light and dark, desk and telephone."""

# Okabe and Ito's colours, which readers with any colour vision tell apart; lighter ones on a dark page
STYLE = """
:root { color-scheme: light dark; --ink: #1b1d21; --soft: #5f6570; --rule: #e1e4e8; --paper: #fff; --card: #f7f8fa;
  --mark: #ffe0a3; --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b4578f; --c4: #b07d00; --c5: #4a9fd0;
  --c6: #6f7680; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --soft: #9aa1ab; --rule: #31353c; --paper: #15171a; --card: #1d2024; --mark: #6b4c10;
    --c0: #56b0ee; --c1: #f58b4c; --c2: #35c99c; --c3: #e298c4; --c4: #eebb45; --c5: #9bd4f6; --c6: #a9b0ba; }
}
* { box-sizing: border-box; }
body { font: 15px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1112px;
  margin: 2.5rem auto 4rem; padding: 0 1.5rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .8rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .5rem; }
.note, .none, figcaption { color: var(--soft); font-size: .87rem; }
.note { margin: .5rem 0; }
.wide { overflow-x: auto; }
.tiles { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.4rem 0 0; }
.tile { background: var(--card); border-left: 5px solid; border-radius: 6px; padding: .7rem 1.2rem; min-width: 15rem; }
.tile b { display: block; font-size: 1.9rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.tile small { color: var(--soft); font-size: .87rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .32rem .55rem; vertical-align: top; border-bottom: 1px solid var(--rule); text-align: right;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th { font-weight: 600; color: var(--soft); }
td small { display: block; color: var(--soft); font-weight: 400; line-height: 1.2; }
.best { font-weight: 700; }
i { display: inline-block; width: .75em; height: .75em; border-radius: 50%; margin-right: .5em; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1.2rem 1.5rem; }
figure { margin: 0; } figure.whole { grid-column: 1 / -1; } figure.whole svg { min-width: 700px; }
svg { max-width: 100%; height: auto; display: block; }
svg text { font: 12.5px system-ui, sans-serif; fill: var(--soft); } svg .name { fill: var(--ink); }
.line { fill: none; stroke-width: 2.2; stroke-linejoin: round; } .thin { stroke-width: 1; opacity: .45; }
.over { stroke: var(--ink); stroke-width: 1.6; }
.band { opacity: .16; } .cloud { fill-opacity: .28; }
.whisker { stroke-width: 1.6; } .mean { stroke-width: 3.2; }
.axis { fill: none; stroke: var(--soft); } .grid { stroke: var(--rule); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.5rem; padding: 0; margin: .4rem 0; }
.sample { background: var(--card); border-radius: 6px; padding: .7rem 1rem; margin: .7rem 0; }
.sample p { margin: 0; } .sample p + p { margin-top: .3rem; } .sample small { color: var(--soft); }
mark { background: var(--mark); color: inherit; padding: 0 .2em; border-radius: 3px; }
del { color: var(--soft); }
summary { cursor: pointer; } pre { overflow-x: auto; font-size: 12px; } code { font-size: .9em; }
"""
