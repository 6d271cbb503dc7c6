"""Keratin: an ahead-of-time compiler for neural-network graphs.

`keratin.backend` is the Keras backend API; `keratin.keras2` makes Keras 2.3.1
run on it: KERAS_BACKEND=keratin.keras2.
"""

from keratin import backend
from keratin._keratin import Function, Tensor

__all__ = ["Function", "Tensor", "backend"]
