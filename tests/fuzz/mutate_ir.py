"""Looks for IR that makes the compiler crash.

    mutate_ir.py DIR [--models DIR] [--seed N] [--count N] [--programs BIN]

Writes the dumps of every stage of a few models into DIR, changes a token or a
line or two of one at a time, and gives it to keratinc and to keratin-opt from
that stage on. What they refuse is fine. A signal, a report of a sanitizer or no
end in sight is a find: the file stays in DIR/finds, beside what was said.

The same seed makes the same files. Not part of the tests: a find becomes a test
of its own.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys

STAGES = ["graph", "core", "layout", "linalg", "kernels", "loops"]
MODELS = ["siamese_shared", "rnn_masked", "cnn_3d", "operator_nodes", "merging"]
SECONDS = 60
SIGNS = re.compile(
    r"AddressSanitizer|LeakSanitizer|runtime error:|Assertion `|"
    r"PLEASE submit|UNREACHABLE|LLVM ERROR"
)

NUMBERS = ["0", "1", "-1", "2", "3", "7", "64", "1000000007", "4294967296"]
NUMBERS += ["9223372036854775807", "-9223372036854775808", "4611686018427387904"]
TYPES = ["f32", "f64", "f16", "bf16", "i1", "i8", "i32", "i64", "index", "ui8"]
EXTENTS = ["?", "0", "1", "2", "3", "16", "4294967296", "3037000500"]


def replace_one(text, pattern, choose, rng):
    """One match of `pattern`, chosen at random, becomes `choose(match)`."""
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    match = rng.choice(found)
    return text[: match.start()] + choose(match) + text[match.end() :]


def number(text, rng):
    return replace_one(
        text, r"(?<![\w%#.x@])-?\d+\b(?!x)", lambda m: rng.choice(NUMBERS), rng
    )


def extent(text, rng):
    return replace_one(
        text, r"(?<=[<x])(\d+|\?)(?=x)", lambda m: rng.choice(EXTENTS), rng
    )


def element(text, rng):
    return replace_one(
        text,
        r"\b(f16|bf16|f32|f64|i1|i8|i32|i64|index|ui8)\b",
        lambda m: rng.choice(TYPES),
        rng,
    )


def rank(text, rng):
    return replace_one(
        text,
        r"(?<=[<x])(\d+|\?)x",
        lambda m: rng.choice(["", m.group(0) * 2]),
        rng,
    )


def value(text, rng):
    names = re.findall(r"%[\w#]+", text)
    return replace_one(text, r"%[\w#]+", lambda m: rng.choice(names), rng)


def operation(text, rng):
    names = re.findall(r"\b[a-z_]+\.[a-z_.]+\b", text)
    return replace_one(
        text, r"\b[a-z_]+\.[a-z_.]+\b", lambda m: rng.choice(names), rng
    )


def symbol(text, rng):
    names = re.findall(r"@[\w.]+", text)
    return replace_one(text, r"@[\w.]+", lambda m: rng.choice(names), rng)


def attribute(text, rng):
    """Drops `name = value` of a dictionary."""
    return replace_one(
        text, r"[\w.]+ = [^,{}<>\[\]]+(, |(?=\}))", lambda m: "", rng
    )


def word(text, rng):
    words = re.findall(r"[A-Za-z_]\w+", text)
    return replace_one(text, r"[A-Za-z_]\w+", lambda m: rng.choice(words), rng)


def affine(text, rng):
    return replace_one(
        text,
        r"\bd\d\b",
        lambda m: rng.choice(["d0", "d1", "d2", "d0 + d1", "d0 * 2", "0", "7"]),
        rng,
    )


def lines(text, rng):
    all_lines = text.split("\n")
    i, j = rng.randrange(len(all_lines)), rng.randrange(len(all_lines))
    kind = rng.randrange(3)
    if kind == 0:
        del all_lines[i]
    elif kind == 1:
        all_lines.insert(j, all_lines[i])
    else:
        all_lines[i], all_lines[j] = all_lines[j], all_lines[i]
    return "\n".join(all_lines)


MUTATIONS = [number, extent, element, rank, value, value, operation, symbol]
MUTATIONS += [attribute, word, affine, lines]


def mutate(text, rng):
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        text = rng.choice(MUTATIONS)(text, rng)
    return text


def dump(args, folder):
    dumps = []
    for name in MODELS:
        for level in ("-O0", "-O2"):
            for stage in STAGES:
                prefix = folder / f"{name}{level}.{stage}"
                path = prefix.with_name(prefix.name + ".mlir")
                if not path.exists():
                    subprocess.run(
                        [args.programs / "keratinc", args.models / f"{name}.keras"]
                        + ["-o", prefix, f"--emit={stage}", level],
                        check=True,
                    )
                dumps.append((path, stage, level))
    return dumps


def commands(args, path, stage, level):
    yield [args.programs / "keratinc", path, "-o", args.folder / "out", level]
    later = STAGES[STAGES.index(stage) + 1 :] + ["llvm"]
    yield [args.programs / "keratin-opt", path, "-o", "/dev/null"] + [
        f"--keratin-{name}" for name in later
    ]


def run(command):
    """What is wrong with a run, or nothing."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} s"
    if done.returncode < 0:
        return f"signal {-done.returncode}\n{done.stderr}"
    if SIGNS.search(done.stderr):
        return done.stderr
    if done.returncode not in (0, 1):
        return f"exit code {done.returncode}\n{done.stderr}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path, default="tests/models")
    parser.add_argument("--programs", type=pathlib.Path, default="build/bin")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    args = parser.parse_args()
    finds = args.folder / "finds"
    finds.mkdir(parents=True, exist_ok=True)
    dumps = dump(args, args.folder)
    found = 0
    for index in range(args.seed, args.seed + args.count):
        rng = random.Random(index)
        original, stage, level = rng.choice(dumps)
        path = args.folder / "mutant.mlir"
        path.write_text(mutate(original.read_text(), rng))
        for command in commands(args, path, stage, level):
            problem = run(command)
            if not problem:
                continue
            found += 1
            name = f"{index}-{command[0].name}-{original.stem}"
            (finds / (name + ".mlir")).write_bytes(path.read_bytes())
            words = " ".join(map(str, command))
            (finds / (name + ".txt")).write_text(f"{words}\n{problem}")
            print(name, problem.split("\n")[0], flush=True)
    print(f"{args.count} files, {found} finds")
    return found != 0


if __name__ == "__main__":
    sys.exit(main())
