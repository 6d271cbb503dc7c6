"""What Keras 2.3.1 expects of its world and later versions of it lack.

Python 3.10 dropped the abstract classes of `collections`, Python 3.11
`inspect.ArgSpec`, NumPy 1.24 and 2.0 a number of aliases, and h5py 3 gives text
attributes as `str`. Each is put back only where it is missing. Lists of different
lengths are arrays again for the two modules of Keras that make such.
"""

import collections
import collections.abc
import importlib.abc
import importlib.machinery
import inspect
import sys
import types


def install():
    """Puts back what is missing. Harmless when called again."""
    for name in ("Container", "Iterable", "Mapping", "Sequence"):
        if not hasattr(collections, name):
            setattr(collections, name, getattr(collections.abc, name))
    if not hasattr(inspect, "ArgSpec"):
        inspect.ArgSpec = collections.namedtuple(
            "ArgSpec", "args varargs keywords defaults"
        )
    _install_numpy()
    _install_h5py()


def _install_numpy():
    import numpy

    aliases = {
        "bool": bool,
        "int": int,
        "float": float,
        "object": object,
        "Inf": float("inf"),
        "NaN": float("nan"),
        "alltrue": numpy.all,
        "unicode_": numpy.str_,
        "string_": numpy.bytes_,
    }
    # Not hasattr: NumPy answers that for the old names with a warning.
    for name, value in aliases.items():
        if name not in vars(numpy):
            setattr(numpy, name, value)


class _RaggedNumpy(types.ModuleType):
    """NumPy, but lists of different lengths make an array of lists, as they did
    before NumPy 1.24."""

    def __getattr__(self, name):
        import numpy

        return getattr(numpy, name)

    @staticmethod
    def array(values, *args, **kwargs):
        import numpy

        ragged = (
            isinstance(values, list)
            and not args
            and not kwargs
            and all(isinstance(value, list) for value in values)
            and len({len(value) for value in values}) > 1
        )
        if not ragged:
            return numpy.array(values, *args, **kwargs)
        array = numpy.empty(len(values), dtype=object)
        array[:] = values
        return array


def allow_ragged_arrays(module):
    """For a module that has imported NumPy as np."""
    module.np = _RaggedNumpy("numpy")


class _Text(str):
    """Text that still can be decoded, as the bytes of h5py 2 can."""

    def decode(self, *args, **kwargs):
        return str(self)


def _install_h5py():
    try:
        import h5py
        import numpy
    except ImportError:
        return  # Keras does without it
    manager = h5py.AttributeManager
    if int(h5py.__version__.split(".")[0]) < 3 or hasattr(manager, "_keratin"):
        return
    get = manager.__getitem__

    def getitem(self, name):
        value = get(self, name)
        if type(value) is str:
            return _Text(value)
        if (
            isinstance(value, numpy.ndarray)
            and value.dtype == object
            and value.size
            and isinstance(value.flat[0], str)
        ):
            return [_Text(element) for element in value]
        return value

    manager.__getitem__ = getitem
    manager._keratin = True


class _AfterImport(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Calls a function with a module after it was executed."""

    def __init__(self, name, function):
        self.name, self.function, self.loader = name, function, None

    def find_spec(self, fullname, path, target=None):
        if fullname != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            self.loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        # The module keeps its own loader: others ask it for sources.
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.function(module)


def after_import(name, function):
    """Calls `function(module)` now, or when the module has been imported."""
    if name in sys.modules:
        function(sys.modules[name])
    else:
        sys.meta_path.insert(0, _AfterImport(name, function))
