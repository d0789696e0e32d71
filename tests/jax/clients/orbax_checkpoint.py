"""State that orbax writes and reads again, also while the computation goes on."""
import tempfile

import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp

TOLERANCE = 1e-6


def main():
    params = {"w": jax.random.normal(jax.random.key(0), (64, 64)), "b": jnp.zeros(64, jnp.bfloat16), "n": jnp.int32(3), "key": jax.random.key_data(jax.random.key(5))}
    tx = optax.adam(1e-2)
    state = {"params": params, "opt": tx.init(params["w"])}
    more = jax.jit(lambda w: w @ w * 0.1)
    with tempfile.TemporaryDirectory() as folder, ocp.CheckpointManager(folder, options=ocp.CheckpointManagerOptions(max_to_keep=2)) as manager:
        for i in range(3):
            manager.save(i, args=ocp.args.StandardSave(state))
            state["params"]["w"] = more(state["params"]["w"])
        manager.wait_until_finished()
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), state)
        back = manager.restore(2, args=ocp.args.StandardRestore(shapes))
        steps = manager.all_steps()
    return {"w": back["params"]["w"], "b": back["params"]["b"].astype(jnp.float32), "n": back["params"]["n"], "key": back["params"]["key"].astype(jnp.int64),
            "after": more(back["params"]["w"]), "steps": jnp.array(steps)}
