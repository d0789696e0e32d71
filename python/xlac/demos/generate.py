"""Writes transformer_block.hlo, the program that JAX makes of `block`, and transformer_block.json, with what XLA computes for it.

Run it, with jax installed, to change the demo; `xlac demo` only reads the two files."""
import base64
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
SEED = 7
# Each input with its shape and the scale of the normal numbers in it.
INPUTS = [("x", (2, 16, 32), 1.0), ("ln1_scale", (32,), 0.1), ("ln1_bias", (32,), 0.1), ("w_qkv", (32, 96), 0.18),
          ("w_out", (32, 32), 0.18), ("ln2_scale", (32,), 0.1), ("ln2_bias", (32,), 0.1), ("w_up", (32, 128), 0.18),
          ("b_up", (128,), 0.1), ("w_down", (128, 32), 0.09), ("b_down", (32,), 0.1)]


def layer_norm(x, scale, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * (1 + scale) + bias


def attention(x, w_qkv, w_out, heads=4):
    batch, length, width = x.shape
    split = (x @ w_qkv).reshape(batch, length, 3 * heads, width // heads).transpose(0, 2, 1, 3)
    q, k, v = jnp.split(split, 3, axis=1)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(width // heads)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
    mixed = jax.nn.softmax(scores, axis=-1) @ v
    return mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ w_out


def block(x, ln1_scale, ln1_bias, w_qkv, w_out, ln2_scale, ln2_bias, w_up, b_up, w_down, b_down):
    x = x + attention(layer_norm(x, ln1_scale, ln1_bias), w_qkv, w_out)
    hidden = jax.nn.gelu(layer_norm(x, ln2_scale, ln2_bias) @ w_up + b_up)
    return x + hidden @ w_down + b_down


def main():
    from xlac import demo

    facts = {"seed": SEED, "inputs": [{"name": n, "shape": s, "scale": scale} for n, s, scale in INPUTS]}
    arrays = list(demo.inputs(facts).values())
    lowered = jax.jit(block).lower(*arrays)
    result = np.asarray(lowered.compile()(*arrays))
    facts["result"] = {"shape": result.shape, "dtype": str(result.dtype), "data": base64.b64encode(result.tobytes()).decode(),
                       "made_by": f"XLA:CPU of jaxlib {jax.lib.__version__}"}
    text = lowered.compiler_ir("hlo").as_hlo_text().strip() + "\n"
    (HERE / "transformer_block.hlo").write_text(text)
    (HERE / "transformer_block.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
