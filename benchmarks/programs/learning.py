"""Layers, losses, optimisers and whole steps of machine learning."""
import jax
import jax.numpy as jnp

from . import program


@program(*["f32[512,512]"] * 2, *["f32[512,512]"] * 2, "f32[512,512]>0", "f32[512,512]>0")
def lion_and_decay(w1, w2, g1, g2, m1, m2):
    def one(w, g, m):
        update = jnp.sign(0.9 * m + 0.1 * g)
        return w - 1e-3 * (update + 0.01 * w), 0.99 * m + 0.01 * g

    return one(w1, g1, m1), one(w2, g2, m2)


@program("f32[1000000]", "f32[1000000]", "f32[1000000]", "f32[1000000]>0", "f32[1000000]>0")
def amsgrad(w, g, m, v, top):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    top = jnp.maximum(top, v)
    return w - 1e-3 * m / (jnp.sqrt(top) + 1e-8), m, v, top


@program("f32[64,128,256]", "f32[256,1024]", "f32[512,256]", "f32[256]")
def swiglu_block(x, up, down, scale):
    y = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale
    gate, value = jnp.split(y @ up, 2, -1)
    return x + (jax.nn.silu(gate) * value) @ down


@program("bf16[32,256,512]", "bf16[512,2048]", "bf16[2048,512]", "bf16[512]")
def mlp_bf16(x, w1, w2, bias):
    return jax.nn.gelu(x @ w1) @ w2 + bias


@program("f32[4,8,256,64]", "f32[4,2,256,64]", "f32[4,2,256,64]")
def grouped_query_attention(q, k, v):
    k, v = jnp.repeat(k, 4, 1), jnp.repeat(v, 4, 1)
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
    mask = jnp.tril(jnp.ones((256, 256), bool))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(mask, s, -1e9)), v)


@program("f32[4,512,8,64]", "f32[4,512,8,64]", "f32[4,512,8,64]")
def alibi_window_attention(q, k, v):
    at = jnp.arange(512)
    gap = at[:, None] - at[None]
    bias = -jnp.abs(gap) * (2.0 ** -jnp.arange(1, 9))[:, None, None]
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8 + jnp.where((gap >= 0) & (gap < 128), bias, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v)


@program("f32[8,16,512,64]")
def rotary_halves(x):
    t = jnp.arange(512, dtype=jnp.float32)[:, None] * 10000.0 ** (-jnp.arange(32, dtype=jnp.float32) / 32)
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * jnp.cos(t) - b * jnp.sin(t), b * jnp.cos(t) + a * jnp.sin(t)], -1)


@program("f32[8,128,256]", "f32[256,768]", "f32[256,768]", "f32[768]")
def gru_sequence(x, w, u, bias):
    w, u = w * 0.06, u * 0.06

    def step(h, gx):
        gh = h @ u
        r = jax.nn.sigmoid(gx[:, :256] + gh[:, :256])
        z = jax.nn.sigmoid(gx[:, 256:512] + gh[:, 256:512])
        n = jnp.tanh(gx[:, 512:] + r * gh[:, 512:])
        return (1 - z) * n + z * h, n.mean(-1)

    return jax.lax.scan(step, jnp.zeros((8, 256), jnp.float32), jnp.swapaxes(x @ w + bias, 0, 1))


@program("f32[16,1024,64]", "f32[16,1024,64]>0", "f32[64]")
def selective_state_space(x, dt, a):
    decay = jnp.exp(-dt * jnp.abs(a))

    def join(p, q):
        return p[0] * q[0], q[0] * p[1] + q[1]

    return jax.lax.associative_scan(join, (decay, dt * x), axis=1)[1]


@program("f32[16,32,32,64]", "f32[3,3,64,64]", "f32[64]", "f32[64]")
def preactivation_residual(x, w, scale, shift):
    y = jax.nn.relu((x - x.mean((0, 1, 2))) * jax.lax.rsqrt(x.var((0, 1, 2)) + 1e-5) * scale + shift)
    return x + jax.lax.conv_general_dilated(y, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@program("f32[8,28,28,96]", "f32[7,7,1,96]", "f32[96,384]", "f32[384,96]")
def convnext_block(x, w, up, down):
    y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=96)
    y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-6)
    return x + jax.nn.gelu(y @ up) @ down


@program("f32[8,56,56,32]", "f32[8]")
def squeeze_excite_pool(x, shift):
    s = jax.nn.sigmoid(x.mean((1, 2)) + shift[:, None])
    y = x * s[:, None, None]
    return jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


@program("f32[4,16,16,64]", "f32[4,4,32,64]")
def transposed_convolution_up(x, w):
    return jax.nn.leaky_relu(jax.lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWOI", "NHWC"), transpose_kernel=False))


@program("f32[2048,1000]", "s32[2048]<1000")
def label_smoothing_loss(logits, labels):
    def loss(z):
        logp = jax.nn.log_softmax(z)
        return (0.9 * -jnp.take_along_axis(logp, labels[:, None], 1)[:, 0] - 0.1 * logp.mean(-1)).mean()

    return jax.value_and_grad(loss)(logits)


@program("f32[512,128]", "f32[512,128]")
def contrastive_loss(a, b):
    def loss(a, b):
        a, b = a / jnp.linalg.norm(a, axis=1, keepdims=True), b / jnp.linalg.norm(b, axis=1, keepdims=True)
        s = a @ b.T / 0.07
        return -(jnp.diagonal(jax.nn.log_softmax(s)) + jnp.diagonal(jax.nn.log_softmax(s, 0))).mean()

    return jax.value_and_grad(loss, (0, 1))(a, b)


@program("f32[16,64,40]", "s32[16,20]<39")
def ctc_forward(logits, labels):
    logp = jax.nn.log_softmax(logits)
    path = jnp.stack([jnp.full_like(labels, 39), labels], 2).reshape(16, 40)
    same = jnp.pad(path[:, 2:] == path[:, :-2], ((0, 0), (2, 0)), constant_values=True)

    def step(alpha, at):
        emit = jnp.take_along_axis(at, path, 1)
        one = jnp.pad(alpha[:, :-1], ((0, 0), (1, 0)), constant_values=-1e9)
        two = jnp.where(same, -1e9, jnp.pad(alpha[:, :-2], ((0, 0), (2, 0)), constant_values=-1e9))
        return jnp.logaddexp(jnp.logaddexp(alpha, one), two) + emit, None

    start = jnp.full((16, 40), -1e9).at[:, :2].set(0.0)
    return jax.lax.scan(step, start, jnp.swapaxes(logp, 0, 1))[0]


@program("f32[4096,64]", "f32[64,8]", "f32[8,64,128]", "f32[8,128,64]")
def mixture_of_experts(x, route, up, down):
    gates = jax.nn.softmax(x @ route)
    weight, which = jax.lax.top_k(gates, 2)
    dense = jnp.zeros_like(gates).at[jnp.arange(4096)[:, None], which].set(weight)
    y = jax.nn.relu(jnp.einsum("td,edf->etf", x, up))
    return jnp.einsum("etf,efd,te->td", y, down, dense)


@program("s32[64,32]<5000", "f32[5000,128]", "f32[128,5000]")
def embedding_bag_softmax(tokens, table, out):
    x = table[tokens].mean(1)
    return jax.nn.log_softmax(x @ out)


@program("f32[256,784]", "f32[784,256]", "f32[256,64]", "f32[32,256]", "f32[256,784]")
def variational_autoencoder_step(x, w1, w2, w3, w4):
    def loss(w):
        h = jnp.tanh(x @ w[0])
        mean, log_var = jnp.split(h @ w[1], 2, -1)
        z = mean + jnp.exp(0.5 * log_var) * jax.random.normal(jax.random.key(0), mean.shape)
        logits = jnp.tanh(z @ w[2]) @ w[3]
        bce = (jnp.logaddexp(0.0, logits) - jax.nn.sigmoid(x) * logits).sum(-1)
        return (bce - 0.5 * (1 + log_var - mean ** 2 - jnp.exp(log_var)).sum(-1)).mean()

    w = [w1 * 0.03, w2 * 0.06, w3 * 0.1, w4 * 0.06]
    return [p - 1e-3 * g for p, g in zip(w, jax.grad(loss)(w))]


@program("f32[2048,16]", "f32[16,64]", "f32[64,64]", "f32[64,4]", "f32[2048]", "s32[2048]<4")
def policy_gradient(obs, w1, w2, w3, advantage, action):
    def loss(w):
        z = jnp.tanh(jnp.tanh(obs @ w[0]) @ w[1]) @ w[2]
        logp = jax.nn.log_softmax(z)
        ratio = jnp.exp(jnp.take_along_axis(logp, action[:, None], 1)[:, 0] - jnp.log(0.25))
        clipped = jnp.clip(ratio, 0.8, 1.2)
        return -jnp.minimum(ratio * advantage, clipped * advantage).mean() + 0.01 * (jnp.exp(logp) * logp).sum(-1).mean()

    return jax.grad(loss)([w1, w2, w3])


@program("f32[512,128]", "f32[512,128]", "f32[512]")
def generalised_advantage(rewards, values, last):
    def back(carry, x):
        reward, value, after = x
        carry = reward + 0.99 * after - value + 0.95 * 0.99 * carry
        return carry, carry

    after = jnp.concatenate([values[:, 1:], last[:, None]], 1)
    return jax.lax.scan(back, jnp.zeros(512), (rewards.T, values.T, after.T), reverse=True)[1].T


@program("f32[2000,32]", "s32[12000]<2000", "s32[12000]<2000", "f32[32,32]", "f32[32,32]")
def graph_attention(x, source, target, w, a):
    h = x @ w
    score = jax.nn.leaky_relu((h[source] * (h @ a)[target]).sum(-1))
    top = jax.ops.segment_max(score, target, 2000)
    e = jnp.exp(score - top[target])
    return jax.ops.segment_sum(e[:, None] * h[source], target, 2000) / (jax.ops.segment_sum(e, target, 2000)[:, None] + 1e-9)
