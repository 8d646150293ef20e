"""Arrays in every layout that numpy has, and some that are no numbers at all."""

from __future__ import annotations

import warnings

import numpy as np

VALUES = (0.0, -0.0, 1.0, -1.0, 1e-300, 5e-324, 1e300, -1e300, 1.7e308, -1.7e308, 1e5, -1e5, 1e16, np.pi)
SPECIAL = (np.nan, np.inf, -np.inf)


def _strided(random, array):
    larger = np.zeros([2 * size for size in array.shape], dtype=array.dtype)
    view = larger[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def _reversed(random, array):
    backwards = tuple(slice(None, None, -1) for _ in array.shape)
    return array[backwards].copy()[backwards]


def _misaligned(random, array):
    memory = np.zeros(array.nbytes + 1, dtype=np.uint8)
    view = memory[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def _read_only(random, array):
    copy = array.copy()
    copy.setflags(write=False)
    return copy


def _converted(dtype):
    def convert(random, array):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return array.astype(dtype)

    return convert


def _broadcast(random, array):
    """All rows are the first one, in one place of memory."""
    return np.broadcast_to(array[:1], array.shape) if array.ndim and len(array) else array


def _overlapping(random, array):
    """Rows that share numbers."""
    if array.ndim != 2 or array.size == 0:
        return array
    line = np.ascontiguousarray(array.ravel()[: len(array) + array.shape[1] - 1])
    if len(line) < len(array) + array.shape[1] - 1:
        return array
    return np.lib.stride_tricks.sliding_window_view(line, array.shape[1], writeable=True)


#: Layouts of numbers: what the package takes as it takes a plain array of the same numbers.
LAYOUTS = {
    "plain": lambda random, array: array.copy(),
    "fortran": lambda random, array: np.asfortranarray(array),
    "strided": _strided,
    "reversed": _reversed,
    "misaligned": _misaligned,
    "read-only": _read_only,
    "big-endian": lambda random, array: array.astype(array.dtype.newbyteorder(">")),
    "object": lambda random, array: array.astype(object),
    "list": lambda random, array: array.tolist(),
    "masked without masks": lambda random, array: np.ma.masked_array(array.copy()),
    "broadcast": _broadcast,
    "overlapping": _overlapping,
    "float32": _converted(np.float32),
    "float16": _converted(np.float16),
    "longdouble": _converted(np.longdouble),
}


def lay_out(random, array, names=tuple(LAYOUTS)):
    """The array in one of the layouts."""
    return LAYOUTS[names[random.integers(len(names))]](random, array)


def _masked(random, array):
    return np.ma.masked_array(array.copy(), mask=np.ones(array.shape, dtype=bool))


def _with_value(values):
    def change(random, array):
        copy = np.array(array, dtype=np.float64)
        if copy.size:
            copy.flat[random.integers(copy.size)] = values[random.integers(len(values))]
        return copy

    return change


class _Hostile:
    """Something that raises whatever is asked of it."""

    def __array__(self, *_, **__):
        raise ValueError("this is no array")

    def __len__(self):
        raise ValueError("this has no length")


#: What may be refused, or not.
ODD = {
    "one axis more": lambda random, array: array[None],
    "flat": lambda random, array: array.ravel(),
    "no rows": lambda random, array: array[:0],
    "no columns": lambda random, array: array[..., :0],
    "fewer rows": lambda random, array: array[:-1],
    "fewer columns": lambda random, array: array[..., :-1],
    "transposed": lambda random, array: array.T,
    "scalar": lambda random, array: 1.5,
    "None": lambda random, array: None,
    "text": lambda random, array: "text",
    "complex": _converted(np.complex128),
    "text array": lambda random, array: array.astype(str),
    "bytes array": lambda random, array: array.astype("S5"),
    "times": lambda random, array: np.zeros(array.shape, dtype="M8[s]"),
    "records": lambda random, array: np.zeros(array.shape, dtype=[("a", float), ("b", int)]),
    "mixed objects": lambda random, array: np.array([None, "a", 1.0, [1], {}] * 9, dtype=object)[: len(array)],
    "ragged": lambda random, array: [[1.0], [1.0, 2.0]],
    "masked": _masked,
    "integers": _converted(np.int64),
    "small integers": _converted(np.int8),
    "bools": _converted(bool),
    "special": _with_value(SPECIAL),
    "large or small": _with_value(VALUES),
    "huge": lambda random, array: array * 1e300,
    "hostile": lambda random, array: _Hostile(),
    "set": lambda random, array: {1.0, 2.0},
    "generator": lambda random, array: iter([1.0, 2.0]),
    "deep list": lambda random, array: [[[[[[1.0]]]]]],
}


def odd(random, array, names=tuple(ODD)):
    """Something else in the place of an array, often in an odd layout, too."""
    if array.ndim == 0:
        return [array.item()]
    with np.errstate(all="ignore"):
        changed = ODD[names[random.integers(len(names))]](random, array)
    if isinstance(changed, np.ndarray) and changed.dtype == np.float64 and random.random() < 0.3:
        return lay_out(random, changed)
    return changed


def bytes_of(value):
    """What must not change; None for what cannot."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes() if not value.dtype.hasobject else repr(value.tolist())
    return repr(value) if isinstance(value, list) else None
