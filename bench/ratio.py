#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ratio.py RESULTS.jsonl NAME: adds to each series its p50 divided by that of NAME with the same spacing."""
import json
import sys

path, name = sys.argv[1:3]
rows = [json.loads(line) for line in open(path) if line.strip()]
ours = {r["spacingMs"]: r["p50"] for r in rows if r["name"] == name}
for r in rows:
    if "p50" in r and r["name"] != name and r["spacingMs"] in ours:
        r["ratio"] = round(r["p50"] / ours[r["spacingMs"]], 3)
open(path, "w").write("".join(json.dumps(r) + "\n" for r in rows))
