"""Real Keras on keratin.keras2.

What is about importing and configuration has an interpreter of its own; the other
cases use the Keras that the plug-in has imported, which is quicker.
"""

import json
import os
import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest
from keras import backend as K
from keras import layers
from keras.models import Sequential, load_model


def run(tmp_path, program, configuration=None, **variables):
    home = tmp_path / "keras"
    home.mkdir(exist_ok=True)
    if configuration is not None:
        (home / "keras.json").write_text(json.dumps(configuration))
    environment = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND"}
    environment.update(KERAS_HOME=str(home), **variables)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done


OURS = {"KERAS_BACKEND": "keratin.keras2"}


def test_is_chosen_by_the_environment_or_the_configuration(tmp_path):
    program = "import keras.backend as K; print(K.backend())"
    done = run(tmp_path, program, {"backend": "other"}, **OURS)
    assert done.stdout == "keratin.keras2\n"
    assert "Using keratin.keras2 backend." in done.stderr
    done = run(tmp_path, program, {"backend": "keratin.keras2"})
    assert done.stdout == "keratin.keras2\n"


def test_may_be_imported_before_keras(tmp_path):
    program = """
        import keratin.keras2
        import keras
        assert keras.backend.backend() == "keratin.keras2"
        keras.backend.clear_session()
        keras.backend.manual_variable_initialization(False)
        import sys
        assert "tensorflow" not in sys.modules
    """
    run(tmp_path, program, **OURS)


def test_follows_the_configuration_of_keras(tmp_path):
    program = """
        from keras import backend as K
        assert K.dtype(K.variable([10])) == "float64"
        K.set_floatx("float16")
        assert K.dtype(K.variable([10])) == "float16"
        K.set_floatx("float32")
        K.set_image_data_format("channels_first")
        y = K.conv2d(K.placeholder((2, 3, 8, 8)), K.placeholder((3, 3, 3, 5)))
        assert K.int_shape(y) == (2, 5, 6, 6)
    """
    run(tmp_path, program, {"floatx": "float64", "epsilon": 1e-5}, **OURS)


def test_infers_the_shapes_of_lambdas():
    y = layers.Lambda(lambda x: K.sum(x, axis=1))(layers.Input((3, 4)))
    assert y._keras_shape == (None, 4)


def test_names_of_weights_differ(tmp_path):
    m = Sequential(
        [layers.Bidirectional(layers.LSTM(3), input_shape=(4, 2)), layers.Dense(1)]
    )
    names = [w.name for w in m.weights]
    assert len(set(names)) == len(names), names
    m.compile("rmsprop", "mse")
    x, y = np.random.rand(8, 4, 2), np.random.rand(8, 1)
    m.fit(x, y, verbose=0)
    m.save(tmp_path / "model.h5")
    loaded = load_model(tmp_path / "model.h5")
    np.testing.assert_allclose(loaded.predict(x), m.predict(x), rtol=1e-5)


@pytest.mark.parametrize("name", ["imdb", "reuters"])
def test_data_sets_of_texts_are_arrays_of_lists(tmp_path, monkeypatch, name):
    file = tmp_path / "data.npz"
    texts = np.empty(4, dtype=object)
    texts[:] = [[1, 2], [3], [4, 5, 6], [7]]
    y = np.array([0, 1, 0, 1])
    np.savez(
        file, x_train=texts, x_test=texts, x=texts, y_train=y, y_test=y, y=y
    )
    data = getattr(keras.datasets, name)
    monkeypatch.setattr(data, "get_file", lambda *arguments, **keywords: file)
    (x, y), _ = data.load_data(start_char=None, index_from=0)
    assert x.dtype == object and x.shape == y.shape
    assert min(map(len, x)) == 1 and type(x[0]) is list


def test_a_network_learns():
    np.random.seed(0)
    x = np.random.rand(256, 8, 8, 1)
    y = (x[:, :, :4].sum((1, 2, 3)) > x[:, :, 4:].sum((1, 2, 3))).astype(int)
    m = Sequential(
        [
            layers.Conv2D(4, 3, activation="relu", input_shape=(8, 8, 1)),
            layers.MaxPooling2D(),
            layers.BatchNormalization(momentum=0.5),
            layers.Flatten(),
            layers.Dense(16, activation="relu"),
            layers.Dropout(0.1),
            layers.Dense(2, activation="softmax"),
        ]
    )
    m.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    h = m.fit(x, y, epochs=15, batch_size=32, verbose=0).history
    assert h["loss"][-1] < 0.8 * h["loss"][0], h["loss"]
    loss, accuracy = m.evaluate(x, y, verbose=0)
    assert accuracy > 0.7


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: K.function([x], [x], bogus=1), "bogus"),
        (K.eval, "image"),
        (lambda x: K.function([x], [x])([np.ones((2, 4))]), r"\(None, 3\)"),
    ],
)
def test_mistakes_are_value_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call(K.placeholder((None, 3), name="image"))
