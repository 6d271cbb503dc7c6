"""Writes IR that MLIR's own parser or printer does not survive.

unparsable.py DIR: one file for each kind.
"""

import os
import sys

DEEP = 100000


def nested(begin, inner, end):
    return begin * DEEP + inner + end * DEEP


def aliases(count, define):
    lines = [f"#a{i} = {define(i)}\n" for i in range(count)]
    return "".join(lines) + f"module attributes {{k.x = #a{count - 1}}} {{}}\n"


KINDS = {
    "lists": "module attributes {k.x = " + nested("[", "", "]") + "} {}",
    "types": "func.func private @f(" + nested("tuple<", "i1", ">") + ")",
    "regions": nested("module {", "", "}"),
    "locations": "module {} loc(" + nested("callsite(", '"a"', ' at "b")') + ")",
    "terms": "#m = affine_map<(d0) -> (d0" + " + d0" * DEEP + ")>",
    "axes": "func.func private @f(tensor<" + "1x" * DEEP + "f32>)",
    "chain": aliases(DEEP, lambda i: f"[#a{i - 1}]" if i else "[]"),
    "bomb": aliases(30, lambda i: "[" + f"#a{i - 1}," * 10 + "1]"),
    "index": "module attributes {k.x = array<index: 0>} {}",
}

for name, text in KINDS.items():
    with open(os.path.join(sys.argv[1], name + ".mlir"), "w") as file:
        file.write(text)
