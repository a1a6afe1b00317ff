"""The style sheet of the HTML report, for light and dark screens."""

STYLE = """
:root { color-scheme: light dark; --text: #1d2430; --muted: #5b6472; --page: #fff; --box: #f4f6f9;
  --line: #d4dae3; --skill: #2161c4; --other: #6d7685; --good: #1a7f43; --bad: #c0342b; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --muted: #a0a9b8; --page: #14181f;
  --box: #1e242e; --line: #39424f; --skill: #7eb0ff; --other: #9aa4b3; --good: #5fcf8a;
  --bad: #ff8f86; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.35rem; margin-top: 2.5rem; overflow-wrap: anywhere;
  border-bottom: 1px solid var(--line); }
h3 { font-size: 1.1rem; margin-top: 1.75rem; } h4 { margin: 1.25rem 0 .25rem; }
a { color: var(--skill); }
li, p, blockquote, summary { overflow-wrap: anywhere; }
blockquote { margin: .25rem 0 .5rem; padding-left: .75rem; border-left: 3px solid var(--line);
  color: var(--muted); white-space: pre-wrap; }
pre { margin: .25rem 0; padding: .6rem; background: var(--box); border-radius: 6px;
  white-space: pre-wrap; overflow-wrap: anywhere; font: .85rem/1.45 ui-monospace, monospace; }
details { margin: .5rem 0; padding: .4rem .75rem; border: 1px solid var(--line);
  border-radius: 6px; }
summary { cursor: pointer; }
.note, .role { color: var(--muted); font-size: .9rem; }
.message { margin: .75rem 0; }
.tag { display: inline-block; padding: 0 .45rem; border: 1px solid currentColor;
  border-radius: 4px; font-size: .9rem; }
.good { color: var(--good); } .bad { color: var(--bad); } .neutral { color: var(--muted); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .75rem .3rem 0; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { font-weight: 600; }
.plot { display: grid; grid-template-columns: minmax(6rem, 14rem) minmax(8rem, 1fr) max-content;
  gap: 0 .75rem; align-items: center; margin: .5rem 0 1rem; }
.plot .label { overflow-wrap: anywhere; line-height: 1.25; padding: .2rem 0; }
.plot .value { font-variant-numeric: tabular-nums; white-space: nowrap; }
svg { display: block; overflow: visible; }
svg text { fill: var(--muted); font-size: .75rem; }
.grid { stroke: var(--line); }
.interval { stroke-width: 4; stroke-linecap: round; opacity: .45; }
.interval.skill { stroke: var(--skill); } .dot.skill { fill: var(--skill); }
.interval.other { stroke: var(--other); } .dot.other { fill: var(--other); }
.interval.bad { stroke: var(--bad); } .dot.bad { fill: var(--bad); }
.change { stroke: var(--other); stroke-width: 2; }
.baseline { fill: var(--page); stroke: var(--other); stroke-width: 2; }
@media (max-width: 40rem) {
  .plot { grid-template-columns: 1fr max-content; }
  .plot .label { grid-column: 1 / -1; padding-top: .5rem; }
  .plot > div:empty { display: none; }
  table, tbody, tr, th[scope=row], td { display: block; }
  thead { display: none; }
  tr { padding: .4rem 0; border-bottom: 1px solid var(--line); }
  th[scope=row], td { padding: .1rem 0; border: 0; overflow-wrap: anywhere; }
  td { display: flex; gap: 1rem; justify-content: space-between; }
  td::before { content: attr(data-label); color: var(--muted); }
}
@media print { details > summary { list-style: none; } }
"""
