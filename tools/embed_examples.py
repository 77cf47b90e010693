#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed_examples.py OUTPUT FILE...: files of examples/, named examples/NAME/PATH, as the C table of src/cli/command/example.h."""
import pathlib
import sys

# What is true only beside the sources.
REPLACED = {"../../build/silt": "silt", " ([one line](../../docs/docker.md))": ""}
IGNORED = "node_modules/\n.wrangler/\ndist/\n.dev.vars\n"


def read(path):
    text = path.read_text()
    for old, new in REPLACED.items():
        text = text.replace(old, new)
    return text


def main():
    files = {}
    for path in map(pathlib.Path, sys.argv[2:]):
        name, inner = path.as_posix().split("/examples/")[-1].split("/", 1)
        files.setdefault(name, {".gitignore": IGNORED})[inner] = read(path)
    rows = [(name, inner, text.encode()) for name, of in files.items() for inner, text in of.items()]
    with open(sys.argv[1], "w") as out:
        out.write('#include "cli/command/example.h"\n')
        for i, (_, _, data) in enumerate(rows):
            numbers = ",".join(str(byte - 256 if byte > 127 else byte) for byte in data)
            out.write(f"static const char file_{i}[] = {{{numbers}}};\n")
        out.write("const struct silt_example_file silt_example_files[] = {\n")
        for i, (name, inner, _) in enumerate(rows):
            out.write(f'    {{"{name}", "{inner}", {{file_{i}, sizeof(file_{i})}}}},\n')
        out.write(f"}};\nconst size_t silt_example_file_count = {len(rows)};\n")


main()
