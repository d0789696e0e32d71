"""Writes jax_round_trips.jsonl.xz: JAX programs for 8 devices as XLA sees them, lowered for Shardy and for GSPMD, and what XLA's import, Shardy and
XLA's export make of them: XLA's own dumps, by compiling with the jaxlib that is installed.

  python tests/shard/jax_round_trips.py"""
import json
import lzma
import os
import pathlib
import re
import shutil
import tempfile

DUMPS = tempfile.mkdtemp()
os.environ["XLA_FLAGS"] = ("--xla_force_host_platform_device_count=8 --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=shardy.* "
                           f"--xla_dump_to={DUMPS}")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax._src import compiler  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from jaxlib._jax import DeviceList  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402

import jax_programs  # noqa: E402

STAGES = {"input": "00.input_module", "imported": "01.before_propagation", "exported": "04.output_module"}


def marked(text):
    """A program of the old kind that jaxlib does not send to GSPMD: it goes by a word in the shardings, which metadata may have."""
    def mark(found):
        inner = re.sub(r"(manual|replicated|unknown|last_tile_dim_replicate|last_tile_dims=\{[^}]*\}|<=\[[\d,]*\](?:T\([\d,]*\))?|device=\d+)\}",
                       r"\1 metadata={op_name=\\22mesh\\22}}", found[1])
        return f'mhlo.sharding = "{inner}"'

    text = re.sub(r'mhlo\.sharding = "([^"]*)"', mark, text)
    return text.replace("attributes {", 'attributes {mhlo.frontend_attributes = {xla.sdy.import_mhlo_shardings = "t"}, ', 1)


def plain(text):
    text = text.replace(r" metadata={op_name=\22mesh\22}", "")
    return text.replace('mhlo.frontend_attributes = {xla.sdy.import_mhlo_shardings = "t"}, ', "")


def compiled(text):
    """What XLA dumps, a dictionary."""
    for path in pathlib.Path(DUMPS).iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    options = compiler.get_compile_options(1, 8, device_assignment=np.arange(8).reshape(1, 8))
    options.executable_build_options.use_spmd_partitioning = True
    options.executable_build_options.use_shardy_partitioner = True
    with mlir.make_ir_context():
        try:
            jax.devices()[0].client.compile_and_load(ir.Module.parse(text), DeviceList(tuple(jax.devices())), options)
        except Exception as error:  # the partitioner may refuse what was dumped before
            print("  ", str(error)[:150])
    (folder,) = pathlib.Path(DUMPS, "shardy").iterdir()
    return {key: plain((folder / f"{stage}.mlir").read_text()) for key, stage in STAGES.items() if (folder / f"{stage}.mlir").exists()}


def more():
    """Programs beyond those of jax_programs."""
    spec, mesh, lowered = jax_programs.spec, jax_programs.mesh, jax_programs.lowered
    rows = spec((32, 64), "data", None)
    yield "unconstrained", lowered(lambda x: jax.lax.with_sharding_constraint(jnp.sin(x), jax.NamedSharding(mesh, P(P.UNCONSTRAINED, "model"))) * 2, rows)
    yield "partly_manual", lowered(jax.shard_map(lambda x: jax.lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P(), axis_names={"data"}), rows)
    yield "in_loop", lowered(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: jax.shard_map(
        lambda a: jnp.tanh(a) + jax.lax.ppermute(a, "data", [(0, 1), (1, 0)]), mesh=mesh, in_specs=P("data"), out_specs=P("data"))(c), x), rows)
    yield "twice", lowered(lambda x: (jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(x),
                                      jax.shard_map(jnp.cos, mesh=mesh, in_specs=P("model"), out_specs=P("model"))(x)), rows)
    yield "results", jax.jit(lambda x: (x, x + 1, x.T), out_shardings=(jax.NamedSharding(mesh, P("data")), None, jax.NamedSharding(mesh, P("model", "data")))
                             ).lower(rows).as_text()
    yield "large_constants", lowered(lambda x: jnp.where(x > 0, jnp.full((32, 64), 2.0), x).at[3].set(0.), rows)
    yield "conditional", lowered(lambda p, x: jax.lax.cond(p, lambda x: x * 2, lambda x: jax.lax.with_sharding_constraint(x, jax.NamedSharding(mesh, P("model"))), x),
                                 spec((), dtype=jnp.bool_), rows)


def main():
    path = pathlib.Path(__file__).with_name("jax_round_trips.jsonl.xz")
    with lzma.open(path, "wt", preset=9) as f:
        for mode in ("shardy", "gspmd"):
            jax.config.update("jax_use_shardy_partitioner", mode == "shardy")
            for name, text in (*jax_programs.programs(), *more()):
                jax.clear_caches()
                row = {"name": name, "mode": mode, "lowered": text, **compiled(marked(text) if mode == "gspmd" else text)}
                print(mode, name, sorted(row), flush=True)
                f.write(json.dumps(row) + "\n")
    shutil.rmtree(DUMPS)


if __name__ == "__main__":
    main()
