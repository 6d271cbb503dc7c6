"""Runs examples of Keras 2.3.1 on keratin.keras2, offline.

    examples.py SOURCE NAME…

SOURCE is the unpacked source distribution. Where an example loads a data set
from the network, small random data of the same form stand in; numbers of epochs
and samples are cut down. Prints the first and the last loss of each example and
exits 1 when one did not fall or was not finite.
"""

import pathlib
import re
import subprocess
import sys

STAND_INS = """
import sys
import numpy as np
_random = np.random.RandomState(0)
from keras.datasets import cifar10, imdb, mnist, reuters
def images(count, *shape):
    labels = _random.randint(0, 10, count)
    # What a network can learn: brightness tells the class.
    data = _random.randint(0, 60, (count,) + shape) + 19 * labels.reshape(
        (-1,) + (1,) * len(shape))
    return data.astype("uint8"), labels
def sequences(count, words):
    labels = _random.randint(0, 2, count)
    return np.array([list(_random.randint(1 + label * words // 2,
                                         (1 + label) * words // 2 + 1,
                                         _random.randint(5, 30)))
                     for label in labels], dtype=object), labels
mnist.load_data = lambda *a, **k: (images(N, 28, 28), images(N // 4, 28, 28))
cifar10.load_data = lambda: tuple(
    (x, y[:, None]) for x, y in (images(N, 32, 32, 3), images(N // 4, 32, 32, 3)))
imdb.load_data = lambda num_words=1000, **k: (
    sequences(N, (num_words or 1000) - 2), sequences(N // 4, (num_words or 1000) - 2))
reuters.load_data = imdb.load_data
reuters.get_word_index = lambda *a: {}
"""

# Name to (samples, replacements).
EXAMPLES = {
    "mnist_cnn.py": (512, [("epochs = 12", "epochs = 3")]),
    "mnist_siamese.py": (512, [("epochs = 20", "epochs = 3")]),
    "mnist_irnn.py": (
        128, [("epochs = 200", "epochs = 3"), ("learning_rate = 1e-6", "learning_rate = 1e-4")]),
    "mnist_hierarchical_rnn.py": (128, [("epochs = 5", "epochs = 2")]),
    "reuters_mlp.py": (512, []),
    "imdb_lstm.py": (256, [("epochs=15", "epochs=2"), ("maxlen = 80", "maxlen = 20")]),
    "imdb_bidirectional_lstm.py": (
        256, [("epochs=4", "epochs=2"), ("maxlen = 100", "maxlen = 20")]),
    "imdb_cnn_lstm.py": (256, [("maxlen = 100", "maxlen = 60")]),
    "imdb_fasttext.py": (256, [("maxlen = 400", "maxlen = 40")]),
    "addition_rnn.py": (
        0, [("TRAINING_SIZE = 50000", "TRAINING_SIZE = 1000"), ("range(1, 200)", "range(1, 4)")]),
}


def run(source, name):
    samples, replacements = EXAMPLES[name]
    program = (source / "examples" / name).read_text()
    # They must come first in a file, where the stand-ins are, and do nothing.
    program = re.sub(r"^from __future__ .*$", "", program, flags=re.MULTILINE)
    for old, new in replacements:
        if old not in program:
            return f"'{old}' is not in the example"
        program = program.replace(old, new)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c",
         f"N = {samples}\n" + STAND_INS + f"\nsys.argv = [{name!r}]\n" + program],
        capture_output=True, text=True, cwd=source,
    )
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[-1]
    losses = [float(x) for x in re.findall(r" - loss: ([\d.naif]+)", done.stdout)]
    # Progress bars print running means: the first and the last end of an epoch.
    if not losses or not all(x == x and x < 1e9 for x in losses):
        return f"losses {losses[-3:]}"
    print(f"{name}: loss {losses[0]:.4f} to {losses[-1]:.4f}", flush=True)
    return None if losses[-1] < losses[0] else "the loss did not fall"


def main():
    source, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or EXAMPLES
    problems = {name: run(source, name) for name in names}
    for name, problem in problems.items():
        if problem:
            print(f"{name}: {problem}")
    return 1 if any(problems.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
