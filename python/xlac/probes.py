"""What probes saw, as files: the layout that StableHLO's own interpreter leaves, so that the same tools read it."""
import os

from . import dtypes


def mlir_type(array):
    """"tensor<3x1xi64>" for an array."""
    return f"tensor<{''.join(f'{n}x' for n in array.shape)}{dtypes.mlir_name(array.dtype)}>"


def save(directory, seen):
    """Each of the (probe_id, array) as an .npy file, and a line of index.csv."""
    import numpy

    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "index.csv"), "a", encoding="utf-8", errors="surrogateescape") as index:
        for i, (name, array) in enumerate(seen, 1):
            path = os.path.join(os.fspath(directory), f"probe{i}.npy")
            numpy.save(path, array)
            index.write(f"{name},{mlir_type(array)},{path}\n")
