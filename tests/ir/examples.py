"""Writes a module with the example of every op's description, or fails.

Reads the ODS records as JSON (llvm-tblgen --dump-json) from stdin. The operands
of an example are made arguments of a function: their types are those after the
colon, in order.
"""

import json
import re
import sys


def split_types(text):
    return re.findall(r"tensor<[^>]*>", text)


def operand_types(example):
    bound = re.findall(r"= (%\w+) : (tensor<[^>]*>)", example)  # ktn.scan
    if bound:
        return bound
    names = re.findall(r"%\w+", example.split("=", 1)[-1])
    # `gamma %g : T` gives its type at once.
    own = dict(
        re.findall(
            r"(?:gamma|beta|shape|ktn.random) (%\w+) : (tensor<[^>]*>)", example
        )
    )
    names = [name for name in names if name not in own]
    types = split_types(example.rsplit(" : ", 1)[1].split("->")[0])
    types += types[-1:] * (len(names) - len(types))
    return list(zip(names, types)) + list(own.items())


def function(name, example):
    if example.startswith("ktn.variable"):
        return example.replace("@w", "@other")
    arguments = ", ".join(f"{n}: {t}" for n, t in operand_types(example))
    return f"func.func @{name}({arguments}) {{\n{example}return\n}}"


records = json.load(sys.stdin)
print("ktn.variable @w : tensor<4xf32> = dense<0.0> : tensor<4xf32>")
for key in records["!instanceof"]["Ktn_Op"]:
    record = records[key]
    examples = re.findall(r"```mlir\n(.*?)```", record["description"], re.DOTALL)
    if len(examples) != 1 or f"ktn.{record['opName']}" not in examples[0]:
        sys.exit(f"{key} has {len(examples)} examples of ktn.{record['opName']}")
    print(function(f"example_{record['opName']}", re.sub(r"(?m)^    ", "", examples[0])))
