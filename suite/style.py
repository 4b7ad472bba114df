"""The style sheet of the HTML report: one text, for light and dark, and for eyes that see few colours.

The hues are those of Okabe and Ito, darkened or lightened until they can be read
on the page (5:1 at least); each stands beside a word or a shape.
"""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--page:#fff;--card:#f6f8fa;--ink:#1f2328;--soft:#57606a;--line:#d0d7de;
--good:#0072b2;--bad:#b34700;--none:#5c6670;--link:#0550ae;--mark:#fff3c4}
@media (prefers-color-scheme:dark){:root{--page:#0d1117;--card:#161b22;--ink:#e6edf3;--soft:#9da7b3;--line:#30363d;
--good:#56b4e9;--bad:#ff8a4c;--none:#9da7b3;--link:#79c0ff;--mark:#4a3f0d}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:90rem;padding:1rem;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;overflow-wrap:anywhere}
h1{font-size:1.35rem;line-height:1.3;margin:.2rem 0}h2{font-size:1.1rem;margin:1.6rem 0 .6rem}
h3{font-size:1rem;margin:0 0 .4rem}h4{font-size:.85rem;margin:.6rem 0 .2rem;color:var(--soft)}
a{color:var(--link)}.small,.cut{color:var(--soft);font-size:.85rem}p{margin:.3rem 0}
ul{margin:.4rem 0;padding-left:1.2rem}.pins{list-style:none;padding:0}.never{font-weight:600}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:.3rem;background:var(--page);padding:.3rem}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.tag{white-space:nowrap}.PASS{--hue:var(--good)}.FAIL{--hue:var(--bad)}.DIVERGED,.INVALID{--hue:var(--none)}
.tag{color:var(--hue)}
.scroll{overflow-x:auto;padding:4px}
svg{max-width:none;vertical-align:middle}svg text{fill:var(--ink);font-size:13px}.heat .word{font-weight:700}
.box{stroke:var(--line)}.box.good{fill:var(--good);stroke:var(--good)}.box.bad{fill:var(--bad);stroke:var(--bad)}
.box.none{fill:var(--none);stroke:var(--none);stroke-dasharray:5 3}
a:hover .box,a:focus-visible .box{stroke-width:3}
.track{fill:var(--line)}.span{stroke:var(--hue);stroke-width:3;fill:none}.share{fill:var(--hue)}
.wanted{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:3 2}
.dot{fill:none;stroke:var(--hue);stroke-width:2}.dot.PASS{stroke-width:8;stroke-linecap:round}
.cells{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,34rem),1fr));gap:.7rem}
.cell:has(>details[open]){grid-column:1/-1}
.cell{border:1px solid var(--line);border-left:5px solid var(--hue);border-radius:6px;background:var(--card);
padding:.7rem .8rem;min-width:0}
.cell:target{outline:3px solid var(--link)}
.facts{display:flex;flex-wrap:wrap;gap:.2rem 1rem;align-items:center;margin-bottom:.3rem}
.dots{display:block;margin:.3rem 0}
summary{cursor:pointer;padding:.2rem 0}
.run{border-top:1px solid var(--line);margin-top:.5rem}.run>div{padding:.2rem 0 .8rem}
.two{display:grid;grid-template-columns:1fr 1fr;gap:1rem}
pre,code{font:13px/1.45 ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{white-space:pre-wrap;margin:0;padding:.5rem;background:var(--page);border:1px solid var(--line);border-radius:4px;
max-height:30rem;overflow-y:auto}
mark{background:var(--mark);color:inherit;border:1px solid;border-radius:3px;font-weight:700}
ins{text-decoration:underline 2px;text-underline-offset:3px;color:inherit}
del{text-decoration:underline wavy 1px;text-underline-offset:3px;color:inherit}
.path{width:100%;table-layout:fixed;border-collapse:collapse;margin-top:.6rem}
.path th{text-align:left;font-size:.85rem;color:var(--soft)}
.path td{border-top:1px solid var(--line);padding:.2rem .5rem .2rem 0;vertical-align:top}
.how{font-size:.85rem;color:var(--soft)}
dt{font-weight:600;margin-top:.4rem}dd{margin:0 0 0 1rem}
@media (max-width:50rem){body{padding:.6rem}.two{grid-template-columns:1fr;gap:0}}
"""
