"""Attention, matrix products and convolutions with what stands around them, as libraries of layers write them."""
import jax
import jax.numpy as jnp

from . import program

HIGHEST = -2.0**30


@program("f32[2,384,8,64]", "f32[2,384,8,64]", "f32[2,384,8,64]", "f32[2,1,384,384]>0")
def attention_of_flax(q, k, v, keep):
    q = q / jnp.sqrt(64.0)
    s = jnp.einsum("...qhd,...khd->...hqk", q, k)
    s = jnp.where(keep > 0.2, s, jnp.finfo(s.dtype).min)
    return jnp.einsum("...hqk,...khd->...qhd", jax.nn.softmax(s), v)


@program("f32[1,1024,8,64]", "f32[1,1024,8,64]", "f32[1,1024,8,64]")
def attention_of_jax_causal(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


@program("f32[1,512,2304]", "f32[512,512]>0")
def attention_of_gpt2(x, mask):
    q, k, v = (t.reshape(1, 512, 12, 64).transpose(0, 2, 1, 3) for t in jnp.split(x, 3, -1))
    s = q @ k.swapaxes(-1, -2) / jnp.sqrt(64.0)
    causal = jnp.arange(512)[:, None] >= jnp.arange(512)[None]
    s = jnp.where(causal, s, -1e10) + jnp.log(mask)
    return (jax.nn.softmax(s) @ v).transpose(0, 2, 1, 3).reshape(1, 512, 768)


@program("bf16[1,512,16,64]", "bf16[1,512,4,64]", "bf16[1,512,4,64]")
def attention_of_llama(q, k, v):
    k, v = jnp.repeat(k, 4, 2), jnp.repeat(v, 4, 2)
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * 0.125
    s = jnp.where(jnp.tril(jnp.ones((512, 512), bool)), s, HIGHEST)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(jnp.bfloat16), v)


@program("f32[2,12,128,64]", "f32[2,12,512,64]", "f32[2,12,512,64]", "f32[12,128,512]")
def attention_of_t5_cross(q, k, v, bias):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) + bias
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s), v)


@program("f32[8,1,8,64]", "f32[8,1024,8,64]", "f32[8,1024,8,64]", "s32[8]<1024")
def attention_of_one_token(q, k, v, length):
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8
    s = jnp.where(jnp.arange(1024) <= length[:, None, None, None], s, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v)


@program("f32[1,8,256,64]", "f32[1,8,256,64]", "f32[1,8,256,64]")
def attention_gradients(q, k, v):
    def loss(q, k, v):
        s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8
        s = jnp.where(jnp.tril(jnp.ones((256, 256), bool)), s, -1e9)
        return (jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s), v) ** 2).sum()

    return jax.grad(loss, (0, 1, 2))(q, k, v)


@program("f32[512,512]", "f32[512,2048]", "f32[2048]", "f32[2048,512]", "f32[512]")
def gelu_layer_with_residual(x, w1, b1, w2, b2):
    return x + jax.nn.gelu(x @ w1 + b1) @ w2 + b2


@program("f32[4,128,512]", "f32[512]>0", "f32[512]", "f32[512,1536]", "f32[1536]")
def normalised_projection(x, scale, offset, w, b):
    mean = x.mean(-1, keepdims=True)
    y = (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale + offset
    return jnp.split(y @ w + b, 3, -1)


@program("bf16[256,512]", "bf16[512,2048]", "bf16[2048]", "bf16[2048,512]")
def relu_layer_bf16(x, w1, b1, w2):
    return jax.nn.relu(x @ w1 + b1) @ w2


@program("f16[256,512]", "f16[512,1024]", "f16[1024]")
def tanh_layer_f16(x, w, b):
    return jnp.tanh(x @ w + b)


@program("s8[256,1024]<100", "s8[1024,512]<100", "f32[512]>0", "f32[256,1]>0")
def int8_layer(x, w, by_column, by_row):
    y = jax.lax.dot(x, w, preferred_element_type=jnp.int32)
    return jax.nn.silu(y.astype(jnp.float32) * by_column * by_row * 1e-4)


@program("f32[256,1024]", "s8[1024,512]<100", "f32[512]>0")
def int8_weights(x, w, scale):
    return x @ (w.astype(jnp.float32) * scale)


@program("f32[50000,4,4]", "f32[50000,4,4]", "f32[50000,4]")
def transforms_4x4(a, b, x):
    return jnp.einsum("nij,njk,nk->ni", a, b, x)


@program("f32[2000,24,24]", "f32[2000,24]")
def many_matrix_vectors(a, x):
    y = jnp.einsum("nij,nj->ni", a, x)
    return jnp.einsum("nji,nj->ni", a, jnp.tanh(y))


@program("f32[20000,16]", "f32[16,16]", "f32[20000]>0")
def weighted_gram(x, w, weight):
    return jnp.einsum("ni,nj,n->ij", x, x, weight) @ w, x @ w


@program("f32[64,32,32]", "f32[64,32,16]")
def many_small_products(a, b):
    return jnp.einsum("nij,njk->nik", a, jax.nn.relu(jnp.einsum("nij,njk->nik", a, b)))


@program("f32[1,56,56,64]", "f32[3,3,64,64]", "f32[3,3,64,64]", "f32[64]>0", "f32[64]")
def basic_block_nhwc(x, w1, w2, scale, offset):
    def conv(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) * scale + offset

    return jax.nn.relu(x + conv(jax.nn.relu(conv(x, w1)), w2))


@program("f32[1,64,56,56]", "f32[128,64,3,3]", "f32[128,128,3,3]", "f32[128,64,1,1]", "f32[128,1,1]>0")
def down_block_nchw(x, w1, w2, w3, scale):
    def conv(x, w, stride=1, pad=1):
        return jax.lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2) * scale

    return jax.nn.relu(conv(jax.nn.relu(conv(x, w1, 2)), w2) + conv(x, w3, 2, 0))


@program("f32[4,2000,32]", "f32[2,32,64]", "f32[32,32]")
def gated_dilated_conv(x, w, out):
    for step in (1, 4, 16):
        y = jax.lax.conv_general_dilated(x, w, (1,), [(step, 0)], rhs_dilation=(step,), dimension_numbers=("NWC", "WIO", "NWC"))
        a, b = jnp.split(y, 2, -1)
        x = x + (jnp.tanh(a) * jax.nn.sigmoid(b)) @ out
    return x


@program("f32[2,16,16,128]", "f32[4,4,128,64]", "f32[4,4,64,32]", "f32[64]", "f32[32]")
def upsampling_decoder(x, w1, w2, b1, b2):
    def up(x, w, b):
        return jax.nn.relu(jax.lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + b)

    return up(up(x, w1, b1), w2, b2)


@program("f32[2,28,28,96]", "f32[3,3,1,96]", "f32[96,192]", "f32[96]>0", "f32[192]")
def separable_conv(x, depthwise, pointwise, scale, b):
    y = jax.lax.conv_general_dilated(x, depthwise, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=96)
    return jnp.minimum(jax.nn.relu(jax.nn.relu(y * scale) @ pointwise + b), 6.0)


@program("f32[1,28,28,128]", "f32[3,3,4,128]", "f32[128]")
def grouped_conv(x, w, b):
    y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=32)
    return jax.nn.relu(y + b)


@program("f32[8,28,28,16]", "f32[3,3,16,32]", "f32[32,10]")
def conv_gradients(x, w, last):
    def loss(w, last):
        y = jax.nn.relu(jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        y = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jax.nn.logsumexp(y.mean((1, 2)) @ last, -1).sum()

    return jax.grad(loss, (0, 1))(w, last)


@program("f32[1,224,224,3]", "f32[7,7,3,64]", "f32[64]")
def stem_with_pooling(x, w, b):
    y = jax.lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.lax.reduce_window(jax.nn.relu(y + b), -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


@program("f32[4,224,224,3]", "f32[16,16,3,192]", "f32[192]")
def patches(x, w, b):
    return jax.lax.conv_general_dilated(x, w, (16, 16), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")).reshape(4, 196, 192) + b


@program("f32[1,12,24,24,16]", "f32[3,3,3,16,32]")
def conv_of_volumes(x, w):
    return jax.nn.relu(jax.lax.conv_general_dilated(x, w, (1, 1, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")))
