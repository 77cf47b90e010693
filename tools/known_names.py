#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""known_names.py OPENAPI OUTPUT: the names that each operation knows, as C tables for src/api/core/strict.c: the
parameters of its query and the members of its JSON body, with the members of objects inside."""
import json
import sys

source, target = sys.argv[1:3]
document = json.load(open(source))
lines = []
names = {}


def resolve(node):
    while "$ref" in node:
        at = document
        for key in node["$ref"][2:].split("/"):
            at = at[key]
        node = at
    return node


def members(schema, found):
    """Adds the members of an object, or of each object that the value may be; False: any name is fine."""
    schema = resolve(schema)
    strict = False
    for key in ("allOf", "oneOf", "anyOf"):
        for choice in schema.get(key, []):
            strict = members(choice, found) or strict
    if "items" in schema:
        strict = members(schema["items"], found) or strict
    if "properties" in schema and not schema.get("additionalProperties"):
        strict = True
        for name, value in schema["properties"].items():
            found.setdefault(name, []).append(value)
    return strict


def table(known):
    """The C expression for a list of names; known is {name: [schemas]}."""
    rows = []
    for name, schemas in known.items():
        found = {}
        strict = any([members(schema, found) for schema in schemas])
        rows.append(f'{{"{name}", {table(found) if strict else "NULL"}}}')
    text = ", ".join(rows + ["{NULL, NULL}"])
    if text not in names:
        names[text] = f"names_{len(names)}"
        lines.append(f"static const struct silt_known {names[text]}[] = {{{text}}};")
    return names[text]


def body_of(operation):
    content = resolve(operation.get("requestBody", {})).get("content", {})
    found = {}
    if "application/json" not in content or not members(content["application/json"]["schema"], found):
        return "NULL"
    return table(found)


rows = []
for path, item in document["paths"].items():
    for method in ("get", "put", "post", "delete", "patch"):
        operation = item.get(method)
        if operation is None:
            continue
        parameters = [resolve(p) for p in item.get("parameters", []) + operation.get("parameters", [])]
        query = table({p["name"]: [] for p in parameters if p["in"] == "query"})
        rows.append(f'    {{"{method.upper()}", "{path}", {query}, {body_of(operation)}}},')

with open(target, "w") as out:
    out.write('#include "api/core/strict.h"\n\n#include <stddef.h>\n\n')
    out.write("\n".join(lines))
    out.write("\n\nconst struct silt_operation silt_operations[] = {\n")
    out.write("\n".join(rows))
    out.write("\n};\nconst size_t silt_operation_count = sizeof(silt_operations) / sizeof(silt_operations[0]);\n")
