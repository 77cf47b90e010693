#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py INPUT OUTPUT NAME: a file as a C array `const unsigned char NAME[]`, with its size."""
import sys

source, target, name = sys.argv[1:4]
data = open(source, "rb").read()
with open(target, "w") as out:
    out.write("#include <stddef.h>\n")
    out.write(f"extern const unsigned char {name}[];\nextern const size_t {name}_size;\n")
    out.write(f"const unsigned char {name}[] = {{{','.join(map(str, data))}}};\n")
    out.write(f"const size_t {name}_size = sizeof({name});\n")
