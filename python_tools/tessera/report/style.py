# SPDX-License-Identifier: Apache-2.0
"""The look of a report: light and dark, wide and narrow."""

CSS = """
:root{color-scheme:light dark;--ink:#1a1d21;--soft:#5b6470;--paper:#fff;--line:#d9dde3;--band:#f3f5f8;--mark:#0b62d6;
--warm:#b3470c;--pick:#fff1c2}
@media (prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#9aa4b1;--paper:#15181c;--line:#333a43;--band:#1e2329;
--mark:#6aa9ff;--warm:#f0954f;--pick:#4a3f14}}
*{box-sizing:border-box}
body{margin:0;font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
header{padding:14px 20px 6px}h1{font-size:20px;margin:0}h2{font-size:16px;margin:22px 0 8px}
header p{margin:2px 0;color:var(--soft);overflow-wrap:anywhere}
nav{display:flex;gap:2px;overflow-x:auto;padding:0 16px;border-bottom:1px solid var(--line);position:sticky;top:0;
background:var(--paper);z-index:2;scrollbar-width:none}
nav button{font:inherit;color:var(--soft);background:none;border:0;border-bottom:3px solid transparent;padding:9px 10px;
cursor:pointer;white-space:nowrap}
nav button[aria-selected=true]{color:var(--ink);border-color:var(--mark)}
button:focus-visible,tr:focus-visible,select:focus-visible,input:focus-visible{outline:2px solid var(--mark);
outline-offset:-2px}
main{padding:6px 20px 90px;max-width:1400px}
section[hidden]{display:none}section>.wide:first-child,section>.draw:first-child{margin-top:12px}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:10px;margin:12px 0}
.card{background:var(--band);border-radius:8px;padding:10px 12px;overflow-wrap:anywhere}

.advice{margin:10px 0;max-width:760px}.advice p{margin:4px 0}.advice.picked{background:var(--pick)}
ul{padding-left:20px}li{margin:4px 0;overflow-wrap:anywhere}
.card b{display:block;font-size:18px;font-weight:600}.card span{color:var(--soft);font-size:13px}
.wide{overflow-x:auto;max-height:70vh;overflow-y:auto;border:1px solid var(--line);border-radius:8px}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th,td{padding:5px 10px;text-align:left;vertical-align:top;white-space:nowrap;border-bottom:1px solid var(--line)}
td.long{white-space:normal;min-width:180px;overflow-wrap:anywhere}
th{position:sticky;top:0;background:var(--band);font-weight:600}
th button{font:inherit;color:inherit;background:none;border:0;padding:0;cursor:pointer}
td.num,th.num{text-align:right;font-variant-numeric:tabular-nums}
[data-layer]{cursor:pointer}tr.picked td{background:var(--pick)}svg .picked{stroke:var(--mark);stroke-width:2.5}
svg{display:block;width:100%;height:auto}svg text{fill:var(--ink);font-size:12px}
.draw{overflow:auto;border:1px solid var(--line);border-radius:8px;padding:6px;max-height:75vh}
.draw svg{min-width:640px}.draw svg.middle{max-width:900px}
.draw svg.graph{min-width:0;width:100%;height:66vh;touch-action:none;cursor:grab}
svg.graph:focus-visible{outline:2px solid var(--mark);outline-offset:2px}svg text.host{fill:var(--warm)}
svg text.soft{fill:var(--soft)}
figure{margin:10px 0}figcaption{font-size:13.5px;color:var(--soft)}
svg.graph .picked rect{stroke:var(--mark);stroke-width:2.5}
.host{color:var(--warm);font-weight:600}.soft{color:var(--soft)}
.bar{display:inline-block;height:9px;background:var(--mark);border-radius:2px;vertical-align:middle;margin-right:6px}
.tools{display:flex;gap:8px;flex-wrap:wrap;align-items:center;margin:8px 0}
.tools label{min-width:0;max-width:100%}
.tools button,select,input{font:inherit;color:inherit;background:var(--band);border:1px solid var(--line);
border-radius:6px;padding:4px 9px;max-width:100%}
td button{font:inherit;color:var(--mark);background:none;border:0;padding:0;cursor:pointer;text-decoration:underline}
td button[aria-pressed=true]{color:inherit;text-decoration:none;font-weight:600}
#picked{position:fixed;bottom:0;left:0;right:0;background:var(--band);border-top:1px solid var(--line);padding:8px 20px;
font-size:13.5px;z-index:3;overflow-wrap:anywhere}
code{font:12.5px ui-monospace,monospace}
@media (max-width:600px){main,header,#picked{padding-left:12px;padding-right:12px}nav{padding:0 4px}
.cards{grid-template-columns:1fr 1fr}th,td{padding:5px 7px}.card b{font-size:16px}td.long{min-width:200px}}
"""
