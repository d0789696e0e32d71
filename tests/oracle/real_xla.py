"""Runs HLO text on the real XLA inside jaxlib (CPU, all its passes), to compare with."""
import functools
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

jax = pytest.importorskip("jax")
import jaxlib._hlo as hlo  # noqa: E402
import jaxlib._jax as lib  # noqa: E402

jax.config.update("jax_enable_x64", True)


@functools.lru_cache(maxsize=None)
def compiled(text):
    proto = hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    stablehlo = lib.mlir.xla_computation_to_mlir_module(hlo.XlaComputation(proto))
    devices = jax.devices("cpu")
    return devices[0].client.compile_and_load(stablehlo, lib.DeviceList((devices[0],)), lib.CompileOptions())


def run(text, *args):
    """The leaves of the result, depth first."""
    buffers = [jax.device_put(np.asarray(a)) for a in args]
    return [np.asarray(r[0]) for r in compiled(text).execute_sharded(buffers).disassemble_into_single_device_arrays()]


def printed(text):
    """XLA's own print of it, large constants included."""
    options = hlo.HloPrintOptions()
    options.print_large_constants = True
    return hlo.hlo_module_from_text(text).to_string(options)


def leaves(result):
    """The leaves of what xlac.interpret gives, depth first."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(result)]


def close(got, want, relative, what=""):
    """Compares leaves; errors count relative to the largest number of the leaf."""
    got = leaves(got)
    assert len(got) == len(want), what
    for g, w in zip(got, want):
        assert g.shape == w.shape and g.dtype == w.dtype, (what, g.dtype, w.dtype, g.shape, w.shape)
        wide = np.complex128 if g.dtype.kind == "c" else np.float64
        g, w = g.astype(wide), w.astype(wide)
        np.testing.assert_array_equal(np.isnan(g), np.isnan(w), err_msg=str(what))
        scale = np.nanmax(np.abs(w), initial=0) or 1
        error = np.nanmax(np.abs(g - w), initial=0)
        assert error <= relative * scale, (what, error / scale)


def same(got, want, what=""):
    """Compares leaves bit for bit."""
    got = leaves(got)
    assert len(got) == len(want), what
    for g, w in zip(got, want):
        assert g.shape == w.shape and g.dtype.itemsize == w.dtype.itemsize and g.tobytes() == w.tobytes(), (what, g, w)
