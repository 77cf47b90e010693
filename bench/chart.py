#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chart.py RESULTS.jsonl MACHINE OUT.svg: prints the series as a table, draws p50 (bar) and p99 (mark)."""
import json
import sys
from html import escape

rows = [json.loads(line) for line in open(sys.argv[1]) if line.strip()]
machine, out = sys.argv[2], sys.argv[3]
series = [r for r in rows if "p50" in r]
for r in rows:
    if "p50" in r:
        kind = f"{r['spacingMs']} ms apart" if r.get("spacingMs") else "tight"
        ratio = f"  {r['ratio']:.2f} x Silt" if "ratio" in r else ""
        print(f"{r['name']:<28}{kind:>12}  n={r['count']:<5} p50 {r['p50']:9.3f} ms  p99 {r['p99']:9.3f} ms{ratio}")
    else:
        print(json.dumps(r))
if not series:
    sys.exit(0)

LEFT, WIDTH, ROW = 290, 560, 24
most = max(r["p99"] for r in series)
least = min(r["p50"] for r in series)
import math
lo, hi = math.floor(math.log10(max(least, 0.01))), math.ceil(math.log10(most))
x = lambda ms: LEFT + (math.log10(max(ms, 10**lo)) - lo) / max(hi - lo, 1) * WIDTH
height = 70 + ROW * len(series)
svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 150}" height="{height}" font-family="sans-serif" font-size="12">',
       '<rect width="100%" height="100%" fill="white"/>',
       f'<text x="10" y="20" font-size="15">{escape(sys.argv[1].split("/")[-1].replace(".jsonl", ""))}: bar p50, line p99, milliseconds (log)</text>',
       f'<text x="10" y="38" fill="#666">{escape(machine)}</text>']
for power in range(lo, hi + 1):
    at = x(10**power)
    svg.append(f'<line x1="{at:.1f}" y1="46" x2="{at:.1f}" y2="{height - 18}" stroke="#ddd"/>'
               f'<text x="{at:.1f}" y="{height - 4}" text-anchor="middle" fill="#666">{10**power:g}</text>')
for i, r in enumerate(series):
    y = 50 + i * ROW
    label = r["name"] + (f", {r['spacingMs']} ms apart" if r.get("spacingMs") else ", tight")
    color = "#2b6cb0" if r["name"].startswith("silt") else "#a0aec0"
    svg.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(label)}</text>'
               f'<rect x="{LEFT}" y="{y + 3}" width="{max(x(r["p50"]) - LEFT, 1):.1f}" height="14" fill="{color}"/>'
               f'<line x1="{x(r["p99"]):.1f}" y1="{y + 1}" x2="{x(r["p99"]):.1f}" y2="{y + 19}" stroke="#c53030" stroke-width="2"/>'
               f'<text x="{x(r["p99"]) + 6:.1f}" y="{y + 14}">{r["p50"]:.2f} / {r["p99"]:.2f}</text>')
svg.append("</svg>")
open(out, "w").write("\n".join(svg) + "\n")
print("chart:", out.split("/")[-1])
