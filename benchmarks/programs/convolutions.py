"""Convolutional programs: layouts, strides, dilation, groups, one to three dimensions, chains, gradients, narrow types."""
import jax
import jax.numpy as jnp

from . import program

NHWC, NWC = ("NHWC", "HWIO", "NHWC"), ("NWC", "WIO", "NWC")


def conv(x, w, stride=1, pad="SAME", numbers=None, **others):
    return jax.lax.conv_general_dilated(x, w, (stride,) * (x.ndim - 2), pad, dimension_numbers=numbers, **others)


@program("f32[2,32,64,64]", "f32[64,32,3,3]", "f32[64,1,1]>0", "f32[64,1,1]")
def strided_nchw_with_norm(x, w, scale, offset):
    return jax.nn.relu(conv(x, w, 2, [(1, 1)] * 2) * scale + offset)


@program("f32[1,128,28,28]", "f32[128,128,3,3]", "f32[128,128,3,3]", "f32[128,1,1]>0", "f32[128,1,1]")
def residual_block_nchw(x, w1, w2, scale, offset):
    y = jax.nn.relu(conv(x, w1) * scale + offset)
    return jax.nn.relu(x + conv(y, w2) * scale + offset)


@program("f32[1,28,28,256]", "f32[1,1,256,64]", "f32[3,3,64,64]", "f32[1,1,64,256]", "f32[64]", "f32[256]")
def bottleneck_nhwc(x, w1, w2, w3, b, last):
    y = jax.nn.relu(conv(x, w1, numbers=NHWC) + b)
    y = jax.nn.relu(conv(y, w2, numbers=NHWC) + b)
    return jax.nn.relu(conv(y, w3, numbers=NHWC) + last + x)


@program("f32[8,16000,1]", "f32[80,1,64]", "f32[3,64,64]", "f32[64]")
def audio_stem(x, w1, w2, b):
    y = jax.nn.relu(conv(x, w1, 8, numbers=NWC) + b)
    y = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 4, 1), (1, 4, 1), "VALID")
    return jax.nn.relu(conv(y, w2, numbers=NWC) + b)


@program("f32[4,64,2048]", "f32[64,64,3]", "f32[64,64,3]", "f32[64,1]")
def temporal_network_ncw(x, w1, w2, b):
    y = jax.nn.relu(conv(x, w1, pad=[(2, 0)]) + b)
    return x + jax.nn.relu(conv(y, w2, pad=[(8, 0)], rhs_dilation=(4,)) + b)


@program("f32[1,96,32,32]", "f32[96,48,4,4]", "f32[48,1,1]")
def transposed_nchw(x, w, b):
    return jnp.tanh(jax.lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NCHW", "IOHW", "NCHW")) + b)


@program("f32[1,144,56,56]", "f32[144,1,3,3]", "f32[24,144,1,1]", "f32[144,1,1]>0", "f32[144,1,1]")
def inverted_residual_nchw(x, w, project, scale, offset):
    y = jnp.clip(conv(x, w, 2, [(1, 1)] * 2, feature_group_count=144) * scale + offset, 0, 6)
    return conv(y, project)


@program("f32[1,56,56,96]", "f32[7,7,1,96]", "f32[96]", "f32[96]", "f32[96,384]", "f32[384,96]")
def convnext_block(x, w, b, scale, up, down):
    y = conv(x, w, numbers=NHWC, feature_group_count=96) + b
    y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-6) * scale
    return x + jax.nn.gelu(y @ up) @ down


@program("f32[2,33,33,64]", "f32[3,3,64,32]", "f32[3,3,64,32]", "f32[1,1,64,32]", "f32[32]")
def atrous_pyramid(x, w1, w2, w3, b):
    a = conv(x, w1, numbers=NHWC, rhs_dilation=(2, 2))
    c = conv(x, w2, numbers=NHWC, rhs_dilation=(6, 6))
    return jax.nn.relu(jnp.concatenate([a, c, conv(x, w3, numbers=NHWC)], -1) + jnp.tile(b, 3))


@program("f32[1,1,28,28]", "f32[6,1,5,5]", "f32[16,6,5,5]", "f32[6,1,1]", "f32[16,1,1]")
def lenet(x, w1, w2, b1, b2):
    def pool(y):
        return jax.lax.reduce_window(y, 0.0, jax.lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4

    return pool(jnp.tanh(conv(pool(jnp.tanh(conv(x, w1) + b1)), w2, pad="VALID") + b2))


@program("f32[4,32,32,32]", "f32[3,3,32,64]", "f32[4,32,32,64]")
def gradients_of_a_layer(x, w, g):
    return jax.vjp(lambda x, w: conv(x, w, numbers=NHWC), x, w)[1](g)


@program("bf16[2,28,28,64]", "bf16[3,3,64,128]", "bf16[128]")
def layer_bf16(x, w, b):
    return jax.nn.relu(conv(x, w, numbers=NHWC) + b)


@program("f16[2,28,28,64]", "f16[3,3,64,128]", "f16[128]")
def layer_f16(x, w, b):
    return jax.nn.relu(conv(x, w, numbers=NHWC) + b)


@program("f32[1,16,16,16,16]", "f32[32,16,3,3,3]", "f32[32,1,1,1]")
def volumes_ncdhw(x, w, b):
    return jax.nn.relu(conv(x, w, 2, [(1, 1)] * 3) + b)


@program("f32[1,64,32,32]", "f32[64,16,3,3]", "f32[64,1,1]")
def grouped_nchw(x, w, b):
    return jax.nn.relu(conv(x, w, feature_group_count=4) + b)


@program("f32[16,64,20]", "f32[5,64,128]", "f32[128]")
def text_windows(x, w, b):
    y = conv(jnp.swapaxes(x, 1, 2), w, pad="VALID", numbers=NWC)
    return jax.nn.relu(y + b).max(1)
