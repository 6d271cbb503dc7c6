"""How each system makes a training step of a model of training_models.py.

Each is a function of the model's entry and a number of threads, and gives a
function that does a step with the same batch and returns its loss.
"""

import os
from typing import Callable, NamedTuple

import training_models


def keratin(training, threads):
    """Keras 2.3.1 on keratin.keras2: what model.fit calls for each batch."""
    import keras
    import numpy as np

    model = training.make(keras)
    training_models.set_weights(model)
    x, y = training_models.batch(model, training.classes)
    optimizers = {"sgd": keras.optimizers.SGD, "adam": keras.optimizers.Adam}
    model.compile(
        optimizers[training.optimizer](training.rate),
        "binary_crossentropy" if training.classes == 1
        else "sparse_categorical_crossentropy")
    if y.ndim == 1:
        y = y[:, None]
    feeds, targets, weights = model._standardize_user_data(x, y)
    model._make_train_function()
    arguments = feeds + targets + weights
    if model._uses_dynamic_learning_phase():
        arguments.append(1)
    return lambda: np.ravel(model.train_function(arguments)[0])[0]


def keras_3(backend, training):
    """A model, its labels, loss and optimizer."""
    os.environ["KERAS_BACKEND"] = backend
    import keras

    model = training.make(keras)
    training_models.set_weights(model)
    x, y = training_models.batch(model, training.classes)
    loss = keras.losses.BinaryCrossentropy() if training.classes == 1 else \
        keras.losses.SparseCategoricalCrossentropy()
    rate = training.rate
    optimizer = {"sgd": keras.optimizers.SGD,
                 "adam": keras.optimizers.Adam}[training.optimizer](rate)
    optimizer.build(model.trainable_variables)
    return model, x, y, loss, optimizer


def tensorflow(training, threads, jit=False):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    model, x, y, loss, optimizer = keras_3("tensorflow", training)
    x, y = tf.constant(x), tf.constant(y)
    variables = model.trainable_variables

    @tf.function(jit_compile=jit)
    def step(x, y):
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        gradients = tape.gradient(value, [v.value for v in variables])
        optimizer.apply(gradients, variables)
        return value

    return lambda: step(x, y).numpy()


def xla(training, threads):
    return tensorflow(training, threads, jit=True)


def jax(training, threads):
    model, x, y, loss, optimizer = keras_3("jax", training)
    import jax

    x, y = jax.device_put(x), jax.device_put(y)
    state = [[v.value for v in variables] for variables in
             (model.trainable_variables, model.non_trainable_variables,
              optimizer.variables)]

    def forward(weights, others, x, y):
        scores, others = model.stateless_call(weights, others, x, training=True)
        return loss(y, scores), others

    def step(weights, others, moments, x, y):
        slopes = jax.value_and_grad(forward, has_aux=True)
        (value, others), gradients = slopes(weights, others, x, y)
        weights, moments = optimizer.stateless_apply(moments, gradients, weights)
        return value, weights, others, moments

    compiled = jax.jit(step, donate_argnums=(0, 1, 2)).lower(*state, x, y).compile()

    def run():
        value, *state[:] = compiled(*state, x, y)
        jax.block_until_ready(state)
        return value

    return run


def torch(training, threads):
    """Keras 3 step by step: eager."""
    import torch

    torch.set_num_threads(threads)
    model, x, y, loss, optimizer = keras_3("torch", training)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    variables = model.trainable_variables

    def run():
        model.zero_grad()
        value = loss(y, model(x, training=True))
        value.backward()
        with torch.no_grad():
            optimizer.apply([v.value.grad for v in variables], variables)
        return value.detach()

    return run


class System(NamedTuple):
    environment: str
    """Name of its requirements/*.txt and its virtual environment."""
    make: Callable


SYSTEMS = {
    "tensorflow": System("export", tensorflow),
    "xla": System("export", xla),
    "jax": System("jax", jax),
    "torch": System("torch", torch),
}
