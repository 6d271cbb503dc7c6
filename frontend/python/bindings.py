"""Writes the Python definitions of the functions that C++ headers declare.

    bindings.py --output FILE --by-hand SOURCE HEADER…

Reads the free functions of `namespace keratin::backend` in keratin/backend.h,
keratin/cache.h, keratin/config.h and keratin/ops.h (which keratin-opgen writes
from the op table) with the `///` comments before them. So a function that C++ gains, Python
gains; there is no second list. Left out, and named in a comment, are functions
that SOURCE defines itself and those whose types have no Python form; that none
of Keras' functions is missing is a test (tests/python).
"""

import argparse
import re

# C++ type of an argument to what a Python programmer may give.
ARGUMENTS = {
    "const Tensor &": "TensorLike",
    "const Tensors &": "Sequence[TensorLike]",
    "const Axes &": "int | Sequence[int] | None",
    "const Shape &": "Sequence[int | None]",
    "const Ints &": "int | Sequence[int]",
    "const std::vector<int64_t> &": "int | Sequence[int]",
    "const Dims &": "Sequence[int | None | Tensor] | Tensor",
    "const Dim &": "int | None | Tensor",
    "const Padding &": "str | Sequence[tuple[int, int]]",
    "const std::vector<PadPair> &": "Sequence[tuple[int, int]]",
    "const std::vector<std::pair<int64_t, int64_t>> &": "Sequence[tuple[int, int]]",
    "PadPair": "tuple[int, int]",
    "const Array &": "ArrayLike",
    "std::string_view": "str",
    "DType": "DTypeLike",
    "bool": "bool",
    "int": "int",
    "int64_t": "int",
    "double": "float",
    "std::optional<int64_t>": "int | None",
    "std::optional<uint64_t>": "int | None",
    "std::optional<std::string>": "str | None",
    "uint64_t": "int",
    "const std::optional<Dims> &": "Sequence[int | None | Tensor] | Tensor | None",
    "std::optional<double>": "float | None",
    "const Branch &": "TensorLike | Callable[[], Tensor]",
}
RESULTS = {
    "Tensor": "Tensor",
    "Tensors": "list[Tensor]",
    "Shape": "tuple[int | None, ...]",
    "Array": "numpy.ndarray",
    "std::vector<Array>": "list[numpy.ndarray]",
    "Dim": "int | Tensor",
    "std::map<std::string, int64_t>": "dict[str, int]",
    "DType": "str",
    "std::string": "str",
    "bool": "bool",
    "int64_t": "int",
    "double": "float",
    "void": "None",
    "BatchStatistics": "tuple[Tensor, Tensor, Tensor]",
    "std::pair<Tensor, Tensor>": "tuple[Tensor, Tensor]",
    "std::optional<std::string>": "str | None",
    "CompileCacheStatistics": "dict[str, float]",
    "CtcPaths": "tuple[list[Tensor], Tensor]",
}
# Arguments without a default for which None stands for one.
OPTIONAL = {"data_format"}
# Defaults that are not the same text in both languages.
DEFAULTS = {
    "{}": "None",
    '""': "None",
    "floatx()": "None",
    "std::nullopt": "None",
    "None": "None",
    "true": "True",
    "false": "False",
}


def declarations(text):
    """(comment, declaration) of each function at the namespace's level."""
    start = text.index("namespace keratin::backend {")
    body = text[start + len("namespace keratin::backend {") :]
    comment, words, depth = [], "", 0
    for line in body.splitlines():
        stripped = line.strip()
        if depth == 0 and not words.strip() and stripped.startswith("///"):
            comment.append(stripped[3:].strip())
            continue
        code = re.sub(r"//.*", "", line)
        if depth == 0 and not words.strip() and not code.strip():
            if not stripped.startswith("//"):
                comment = []
            continue
        for char in code + "\n":
            words += char
            depth += (char == "{") - (char == "}")
            if depth < 0:
                return
            if (
                char == "}"
                and depth == 0
                and words.count("(") == words.count(")")
                and re.match(r"\s*(\[\[\w+\]\]\s*)?(inline|template)\b", words)
            ):
                comment, words = [], ""  # the end of a body has no semicolon
                continue
            if char == ";" and depth == 0:
                declaration = " ".join(words[:-1].split())
                # Braces of default values are balanced; those of a class not
                # inside of parentheses.
                if "(" in declaration and not re.match(
                    r"(class|struct|using|namespace|inline|template|friend)\b",
                    declaration,
                ):
                    yield comment, declaration
                comment, words = [], ""


# What a comment for C++ says in other words for Python.
PYTHON_WORDS = [
    (r"\b[Tt]hrows Error\b", "raises ValueError"),
    (r"`?std::nullopt`?|`nullopt`", "None"),
    (r"\b(true|false)\b", lambda match: match[1].capitalize()),
]


def docstring(comment):
    """A comment as the docstring of a Python function: sentences begin with a
    capital letter."""
    text = " ".join(comment)
    for pattern, words in PYTHON_WORDS:
        text = re.sub(pattern, words, text)
    return re.sub(
        r"(^|\. )raises", lambda match: match[1] + "Raises", text
    ).strip()


def split_arguments(text):
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char in "<({") - (char in ">)}")
        if char == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += char
    return [part.strip() for part in parts + [current] if part.strip()]


def python_default(text):
    if text in DEFAULTS:
        return DEFAULTS[text]
    shift = re.fullmatch(r"u?int64_t\((\d+)\) << (\d+)", text)
    if shift:
        return str(int(shift[1]) << int(shift[2]))
    enumerator = re.fullmatch(r"DType::(\w+)", text)
    if enumerator:
        return f"'{enumerator[1].lower()}'"
    if text.startswith("{"):
        inside = text.replace("{", "(").replace("}", ")")
        return inside[:-1] + ",)" if "," not in inside else inside
    if text.startswith('"'):
        return "'" + text[1:-1] + "'"
    return text


class Function:
    def __init__(self, comment, declaration):
        match = re.fullmatch(r"(.+?)([\w%*/+<>=!-]+)\((.*)\)", declaration)
        self.result, self.name = match[1].strip(), match[2]
        self.operator = "operator" in declaration.split("(")[0]
        self.doc = docstring(comment)
        # C++ has keywords that Python has not.
        self.python_name = self.name.rstrip("_")
        self.arguments = []
        for argument in split_arguments(match[3]):
            declared, _, default = argument.partition(" = ")
            kind, name = re.fullmatch(r"(.+?)(\w*)", declared).groups()
            self.arguments.append(
                (kind.strip(), name, python_default(default) if default else None)
            )

    def unknown(self):
        """A type that Python has no form of, if there is one."""
        for kind, _, _ in self.arguments:
            if kind not in ARGUMENTS:
                return kind
        return None if self.result in RESULTS else self.result

    def hint(self, kind, name, default):
        """What a Python programmer may give for an argument."""
        hint = ARGUMENTS[kind]
        if (default == "None" or name in OPTIONAL) and "None" not in hint:
            hint += " | None"
        return hint

    def result_hint(self):
        # The comment says where some of several are missing.
        if self.result == "Tensors" and "`None`" in self.doc:
            return "list[Tensor | None]"
        return RESULTS[self.result]

    def write(self):
        kinds = ", ".join(kind for kind, _, _ in self.arguments)
        arguments, shown = [], []
        for kind, name, default in self.arguments:
            value = "nullptr" if default is None else f'"{default}"'
            arguments.append(f'{{"{name}", {value}}}')
            shown.append(
                f"{name}: {self.hint(kind, name, default)}"
                + (f" = {default}" if default else "")
            )
        signature = f"def {self.python_name}({', '.join(shown)}) -> {self.result_hint()}"
        doc = self.doc.replace("\\", "\\\\").replace('"', '\\"')
        return (
            f'def(m, "{self.python_name}",\n'
            f"    static_cast<{self.result} (*)({kinds})>(&K::{self.name}),\n"
            f"    {{{', '.join(arguments)}}},\n"
            f'    "{signature}",\n    "{doc}");\n'
        )


def tell_apart(functions):
    """A comment that goes on from the one before names its function."""
    whole = ""
    for function in functions:
        if function.doc.startswith("The same"):
            function.doc = f"As {whole}" + function.doc[len("The same") :]
        elif function.doc:
            whole = function.python_name


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True)
    parser.add_argument("--by-hand", required=True)
    parser.add_argument("headers", nargs="+")
    options = parser.parse_args()
    with open(options.by_hand, encoding="utf-8") as file:
        by_hand = set(re.findall(r'byHand\(\s*"(\w+)"', file.read()))

    functions = []
    for header in options.headers:
        with open(header, encoding="utf-8") as file:
            for comment, declaration in declarations(file.read()):
                functions.append(Function(comment, declaration))
    tell_apart(functions)
    names = [function.name for function in functions]
    functions = [
        function
        for function in functions
        if not function.operator and function.python_name not in by_hand
    ]
    functions.sort(key=lambda function: function.name)
    with open(options.output, "w", encoding="utf-8") as file:
        file.write("// Written by bindings.py from the headers. Do not edit.\n")
        for function in functions:
            if function.unknown():
                file.write(f"// {function.name}: no Python form of {function.unknown()}\n")
            elif names.count(function.name) > 1:
                file.write(f"// {function.name}: overloaded\n")
            else:
                file.write(function.write())


if __name__ == "__main__":
    main()
