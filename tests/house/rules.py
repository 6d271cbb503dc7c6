"""The rules of the house that a compiler does not check.

    rules.py RULE ROOT

Prints one line a violation and exits 1 when there is one. A rule is a
function here; each has a .test file of its name.
"""

import json
import os
import re
import subprocess
import sys

root = sys.argv[2]

# docs/ARCHITECTURE.md, "Folders, and who may include whom". What ends in a
# slash is a folder, the rest a file.
MAY_INCLUDE = {
    "ir": ["ir/"],
    "passes": ["passes/", "ir/"],
    "codegen": ["codegen/", "ir/", "passes/Pipelines.h",
                "runtime/include/keratin/abi.h",
                "runtime/include/keratin/dtype.h"],
    "runtime": ["runtime/"],
    "frontend": ["frontend/", "ir/", "codegen/Compile.h", "runtime/include/"],
}
PUBLIC = ("frontend/include/", "runtime/include/")
COMPILER_HEADER = re.compile(r"(mlir|llvm|clang|ir|passes|codegen)/")
LIBC_HEADER = re.compile(r"(sys/)?\w+\.h$")


def tracked(*patterns):
    """Files in git that match, relative to the root; with what is not yet
    added, so that a rule speaks before the commit."""
    out = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached",
         "--others", "--exclude-standard", *patterns],
        cwd=root, check=True, stdout=subprocess.PIPE, text=True,
    ).stdout
    names = [name for name in out.split("\0") if name]
    return [n for n in names if os.path.exists(os.path.join(root, n))]


def read(name):
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return file.read()


def includes(name):
    """(line number, header, is quoted) of each include of a file."""
    for number, line in enumerate(read(name).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)', line)
        if match:
            yield number, match[2], match[1] == '"'


def resolve(name, header):
    """The header as the table above writes it."""
    if header == "keratin/ops.h":  # keratin-opgen writes it
        return "frontend/include/" + header
    for folder in (os.path.dirname(name), *PUBLIC):
        path = os.path.join(folder, header)
        if os.path.exists(os.path.join(root, path)):
            return path
    return header


def arrows():
    """An include goes along the arrows of docs/ARCHITECTURE.md."""
    ours = set(MAY_INCLUDE) | {"tools", "tests"}
    for folder, allowed in MAY_INCLUDE.items():
        for name in tracked(f"{folder}/*.h", f"{folder}/*.cpp", f"{folder}/*.c"):
            for number, header, _ in includes(name):
                target = resolve(name, header)
                if target.split("/")[0] not in ours:
                    continue
                if not any(target == a or a.endswith("/") and target.startswith(a)
                           for a in allowed):
                    yield f"{name}:{number}: {folder} may not include {header}"


def public_headers():
    """Public headers include no compiler, the runtime nothing but libc."""
    for name in tracked("*.h", "*.c"):
        runtime = name.startswith("runtime/")
        if not runtime and not name.startswith(PUBLIC):
            continue
        for number, header, _ in includes(name):
            if COMPILER_HEADER.match(header):
                yield f"{name}:{number}: a public header may not include {header}"
            elif (runtime and not header.startswith("keratin/")
                  and not LIBC_HEADER.match(header)):
                yield f"{name}:{number}: the runtime knows libc only, not {header}"


def records(table, base):
    """TableGen records of `table` that derive from `base`."""
    out = subprocess.run(
        ["llvm-tblgen", "--dump-json", f"-I{root}",
         f"-I{subprocess.getoutput('llvm-config --includedir')}", table],
        cwd=root, check=True, stdout=subprocess.PIPE, text=True,
    ).stdout
    dump = json.loads(out)
    return [dump[name] for name in dump["!instanceof"].get(base, [])]


def examples():
    """Each op's description has an example, and the example parses."""
    for op in records("ir/Ops.td", "Ktn_Op"):
        mnemonic = f"ktn.{op['opName']}"
        description = op.get("description") or ""
        blocks = re.findall(r"```mlir\n(.*?)```", description, re.S)
        if not any(re.search(re.escape(mnemonic) + r"\b", b) for b in blocks):
            yield f"{mnemonic}: no example in its description"
        for block in blocks:
            for error in syntax_errors(block):
                yield f"{mnemonic}: {error}"


def op_rows():
    """Each op that the backend API shows has a row in tests/ops, and each
    function of the API a test."""
    rows = "\n".join(read(name) for name in tracked("tests/ops/*.cpp"))
    for op in records("ir/Ops.td", "Ktn_Op"):
        name = op["kerasName"]
        if name and not re.search(rf"\bK::{re.escape(name)}\b", rows):
            yield f"tests/ops: no row calls K::{name}"
    tests = rows + "\n".join(read(n) for n in tracked("tests/frontend/*.cpp"))
    for name in api_functions():
        if not re.search(rf"\bK::{re.escape(name)}\b", tests):
            yield f"tests: nothing calls K::{name}"


def api_functions():
    """Names of the functions that keratin/backend.h declares."""
    text = read("frontend/include/keratin/backend.h")
    declaration = r"^(?:[A-Z]\w*|bool|void|u?int64_t|std::[\w:<>, ]+) (\w+)\("
    return sorted(set(re.findall(declaration, text, re.M)))


def syntax_errors(example):
    """What the parser says to an example, which may use values and symbols that
    it does not define; the verifier, which says so, begins with an op's name."""
    text = example if "func.func" in example else (
        "func.func @example() {\n" + example + "\nreturn\n}")
    run = subprocess.run(["keratin-opt", "-"], input=text, text=True,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return [line for line in run.stderr.splitlines()
            if re.search(r"error: (?!'ktn\.\w+' op |use of undeclared SSA)", line)]


def pass_tests():
    """Each pass has a description and a lit test that runs it."""
    tests = "\n".join(read(name) for name in tracked("tests/*.mlir", "tests/*.test"))
    for table in tracked("*Passes.td"):
        for record in records(table, "PassBase"):
            flag = record["argument"]
            if not re.search(rf"-{re.escape(flag)}\b(?!-)", tests):
                yield f"{table}: no test runs --{flag}"
            if not (record.get("description") or "").strip():
                yield f"{table}: {flag} has no description"


def generated_files():
    """What a tool can write is not in git."""
    generated = re.compile(
        r"\.(inc|o|a|so|bc|pyc|d)$|(^|/)(CMakeCache\.txt|CMakeFiles/|build/)")
    for name in tracked():
        # LLVM names the module of what it prints; a person writes functions.
        if generated.search(name) or (
                name.endswith(".ll") and read(name).startswith("; ModuleID")):
            yield f"{name}: is a generated file"


def deprecated_create():
    """`Op::create(builder, ...)`, not `builder.create<Op>(...)`."""
    for name in tracked("*.h", "*.cpp", "*.td"):
        for number, line in enumerate(read(name).splitlines(), 1):
            if re.search(r"\b\w+(\.|->)create<", line):
                yield f"{name}:{number}: write Op::create(builder, ...)"


# What a program is made of; AssignLayout is about transposes.
STRUCTURE = {"Scan", "Gradients", "TrainingPhase", "StopGradient", "Variable",
             "Read", "Assign", "Constant"}
LAYOUT = {"Transpose", "Reshape"}


def pass_interfaces():
    """A pass asks for interfaces. The ops that it names it creates, or the
    program is made of them."""
    for name in tracked("passes/*.cpp", "passes/*.h", ":!passes/lower"):
        known = STRUCTURE | (LAYOUT if "AssignLayout" in name else set())
        for number, line in enumerate(read(name).splitlines(), 1):
            for op in re.findall(r"\bktn::(\w+)Op\b(?!::create)", line):
                if op not in known:
                    yield f"{name}:{number}: a pass may not ask for {op}Op"


def anchors(name):
    """What a link to a Markdown file may have behind its #, as GitHub makes it
    of headings."""
    text = re.sub(r"^```.*?^```", "", read(name), flags=re.S | re.M)
    for heading in re.findall(r"^#+ (.+)$", text, re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links():
    """A link of the documentation leads to a file, and to a heading of it."""
    for name in tracked("*.md"):
        for number, line in enumerate(read(name).splitlines(), 1):
            for link in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"\w+:", link):
                    continue
                path, _, anchor = link.partition("#")
                target = os.path.normpath(
                    os.path.join(os.path.dirname(name), path)) if path else name
                if not os.path.exists(os.path.join(root, target)):
                    yield f"{name}:{number}: there is no {path}"
                elif anchor and anchor not in anchors(target):
                    yield f"{name}:{number}: {target} has no heading #{anchor}"


RULES = {rule.__name__.replace("_", "-"): rule for rule in (
    arrows, public_headers, examples, op_rows, pass_tests, generated_files,
    deprecated_create, pass_interfaces, links)}

violations = list(RULES[sys.argv[1]]())
print("\n".join(violations))
sys.exit(1 if violations else 0)
