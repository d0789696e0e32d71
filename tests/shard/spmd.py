"""Runs programs made local on 8 devices of XLA's CPU client, beside the interpreter on the whole program. As a script:

  python tests/shard/spmd.py FIRST LAST     # random programs by their numbers; exits 1 where one is wrong"""
import collections
import os
import re
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import numpy as np  # noqa: E402
import random_programs  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax._src.lib import xla_client  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402

import xlac  # noqa: E402

DEVICES = 8
PARTITION = ("sdy-propagation-pipeline,func.func(sdy-insert-explicit-reshards{enable-full-version=true}),sdy-resolve-permutation-factors,"
             "func.func(sdy-reshard-to-collectives),func.func(sdy-pad-for-divisibility)")
LOCAL = f"sdy-convert-global-to-local{{replica-count={DEVICES}}},sdy-drop-sharding-and-mesh"
TENSOR = re.compile(r"tensor<((?:\d+x)*)f32>(?: \{sdy\.sharding = #sdy\.sharding<@mesh, (\[(?:\{[^}]*\}(?:, )?)*\])[^>]*>\})?")


def signature(text):
    """The shapes and shardings of main's arguments, and of its results."""
    line = next(x for x in text.split("\n") if "@main" in x)
    arguments, _, results = line.partition(" -> ")
    return [[(tuple(int(d) for d in dims.split("x")[:-1]), dims_sharding) for dims, dims_sharding in TENSOR.findall(part)]
            for part in (arguments, results)]


def slices(shape, text, mesh):
    """What each device has, by its number."""
    if not text:
        return {d: tuple(slice(0, n) for n in shape) for d in range(DEVICES)}
    return xlac.sharding.Sharding.parse(f"<@mesh, {text}>", mesh).indices(shape)


def computed(text, values):
    """What the whole program gives: ops that only say shardings give what they take."""
    text = re.sub(r"sdy\.(?:sharding_constraint|reshard) (%\S+) <.*> : (tensor\S+)", r"stablehlo.reshape \1 : (\2) -> \2", text)
    found = xlac.interpret(xlac.parse(text, format="mlir").run("sdy-remove-sharding-groups"), *values)
    return found if isinstance(found, (tuple, list)) else [found]


def compiled(text):
    """Replicas, each with its own data: channels are for partitions, so they go."""
    text = re.sub(r"channel_handle = #stablehlo\.channel_handle<handle = \d+, type = 1>, ", "", text).replace(", use_global_device_ids", "")
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = DEVICES, 1
    options.executable_build_options.num_replicas = DEVICES
    options.executable_build_options.device_assignment = xla_client.DeviceAssignment.create(np.arange(DEVICES).reshape(DEVICES, 1))
    with mlir.make_ir_context():
        code = mlir.module_to_bytecode(ir.Module.parse(text))
    return jax.devices()[0].client.compile_and_load(code, xla_client.DeviceList(tuple(jax.devices())), options)


def put(value, shape, text, mesh):
    """The shards of a value, one a device."""
    where = slices(shape, text, mesh)
    shards = [jax.device_put(np.ascontiguousarray(value[where[d.id]]), d) for d in jax.devices()]
    spread = jax.sharding.Mesh(np.array(jax.devices()), ("d",))
    spec = jax.sharding.PartitionSpec("d") if shape else jax.sharding.PartitionSpec()
    whole = (shards[0].shape[0] * DEVICES, *shards[0].shape[1:]) if shape else ()
    return jax.make_array_from_single_device_arrays(whole, jax.sharding.NamedSharding(spread, spec), shards)


def check(text, seed):
    """"right", "wrong", or why the program can't be made local."""
    module = xlac.parse(text, format="mlir")
    try:
        partitioned = module.run(PARTITION)
        local = partitioned.run(LOCAL)
    except xlac.Error as error:
        return f"refused: {error.message[:60]}"
    mesh = xlac.sharding.Mesh.parse(re.search(r"sdy\.mesh @mesh = (<.*?>)", partitioned.to_text())[1])
    arguments, results = signature(partitioned.to_text())
    random = np.random.default_rng(seed)
    values = [random.integers(-3, 4, shape).astype(np.float32) for shape, _ in arguments]
    wanted = computed(text, values)
    given = compiled(local.to_text()).execute_sharded([put(v, *a, mesh) for v, a in zip(values, arguments)])
    for (shape, sharding), shards, want in zip(results, given.disassemble_into_single_device_arrays(), wanted, strict=True):
        where = slices(shape, sharding, mesh)
        for device, shard in zip(jax.devices(), shards):
            if not np.allclose(np.asarray(shard), want[where[device.id]], rtol=1e-4, atol=1e-4, equal_nan=True):
                return "wrong"
    return "right"


def main(first, last):
    random_programs.AXES.clear()
    random_programs.AXES.update(a=2, b=4)
    found = collections.Counter()
    for seed in range(first, last):
        answer = check(random_programs.program(seed), seed)
        found[answer] += 1
        if answer == "wrong":
            print(f"program {seed} is wrong")
    for answer, n in found.most_common():
        print(n, answer)
    return 1 if found["wrong"] or not found["right"] else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
