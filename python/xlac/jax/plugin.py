"""Registers the PJRT plugin with JAX. JAX calls initialize(); users set environment variables (docs/jax.md).

XLAC_JAX_AS_CPU=1       the plugin takes the place of XLA's CPU: platform "cpu"
XLAC_JAX_PLATFORM=name  what the plugin calls itself to JAX, which lowers by that name: "cpu" unless this says otherwise
XLAC_JAX_DEVICES=8      so many virtual devices; without it, JAX's setting jax_num_cpu_devices
XLAC_JAX_PORTABLE=1     programs come in StableHLO's portable form always, as jaxlib writes it (compiling.py)
XLAC_JAX_OPTIONS=a:1;b  options of the client: threads, synchronous, copy_host_arrays, blas (the path of an OpenBLAS)
"""
import logging
import os
import pathlib

OLDEST, NEWEST = (0, 9), (0, 12)  # of jaxlib: those that the tests have been run with
LIBRARY = pathlib.Path(__file__).resolve().parents[1] / "_pjrt.so"
logger = logging.getLogger(__name__)


def on(name):
    return os.environ.get(name, "") not in ("", "0")


def client_options(clients):
    """Read when a client is made, since the number of devices is a setting of JAX's."""
    import jax
    import xlac

    from . import callbacks, partitioning

    options = {"platform_name": os.environ.get("XLAC_JAX_PLATFORM", "cpu"), "python_call": callbacks.ADDRESS,
               "python_partition": partitioning.ADDRESS, "slot": clients.slot()}
    blas = xlac._openblas()
    if blas:
        options["blas"] = blas
    devices = os.environ.get("XLAC_JAX_DEVICES") or getattr(jax.config, "jax_num_cpu_devices", -1)
    if int(devices) > 0:
        options["num_devices"] = int(devices)
    for item in filter(None, os.environ.get("XLAC_JAX_OPTIONS", "").split(";")):
        name, _, value = item.partition(":")
        options[name] = value or "1"
    return options


def wrong_version(text):
    """What is to be said of a jaxlib of this version, and whether the plugin goes without it; (None, False) of those that are known to work."""
    found = tuple(int(part) for part in text.split(".")[:2])
    known = ".".join(map(str, OLDEST)), ".".join(map(str, NEWEST))
    if found < OLDEST:
        return (f"xlac's plugin needs jaxlib {known[0]} to {known[1]}, and this is jaxlib {text}: "
                "it is not registered (pip install -U jax jaxlib)"), True
    if found > NEWEST:
        return (f"xlac's plugin has been tested with jaxlib {known[0]} to {known[1]}, and this is jaxlib {text}: "
                f"if it fails, pip install 'jax<{NEWEST[0]}.{NEWEST[1] + 1}'"), False
    return None, False


def initialize():
    import jax
    import jaxlib
    from jax._src import xla_bridge

    text, refused = wrong_version(jaxlib.__version__)
    if text:
        logger.warning(text)
    if refused:
        return
    from . import compiling, ffi, leave

    if not LIBRARY.exists():
        logger.warning("xlac was built without its PJRT plugin: %s is not there", LIBRARY)
        return
    name = "cpu" if on("XLAC_JAX_AS_CPU") else "xlac"
    getattr(xla_bridge, "_nonexperimental_plugins", set()).add(name)
    clients = leave.Clients(LIBRARY)
    # Who doesn't ask for xlac goes on with what there was: the least priority. As the CPU it has the CPU's.
    xla_bridge.register_plugin(name, priority=0 if name == "cpu" else -1, library_path=str(LIBRARY), options=lambda: client_options(clients))
    ffi.install(LIBRARY, name, as_cpu=name == "cpu")
    compiling.install()
    if jax.config.jax_platforms == "xlac":  # callbacks get arrays of a CPU, which there must be
        jax.config.update("jax_platforms", "xlac,cpu")
