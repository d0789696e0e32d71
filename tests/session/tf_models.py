"""Models for make_goldens.py, written with TensorFlow: each a function of a variable factory that returns fetches by
name. They are small on purpose; what matters is that they use the ops of the real ones."""
import math

import tensorflow as tf

# --- layers ---


def dense(var, name, x, units, activation=None):
    width = x.shape[-1]
    y = tf.matmul(x, var(f"{name}/w", [width, units], 1 / math.sqrt(width)))
    y = tf.nn.bias_add(y, var(f"{name}/b", [units], 0.1))
    return activation(y) if activation else y


def dense3(var, name, x, units):
    """On [batch, time, width], as Keras does: Tensordot becomes a reshape around a MatMul."""
    width = x.shape[-1]
    y = tf.tensordot(x, var(f"{name}/w", [width, units], 1 / math.sqrt(width)), [[2], [0]])
    return y + var(f"{name}/b", [units], 0.1)


def layer_norm(var, name, x):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    gain, shift = var(f"{name}/gain", [x.shape[-1]], 0.1, 1), var(f"{name}/shift", [x.shape[-1]], 0.1)
    return tf.nn.batch_normalization(x, mean, variance, shift, gain, 1e-5)


def conv(var, name, x, filters, size=3, stride=1, padding="SAME"):
    depth = x.shape[-1]
    kernel = var(f"{name}/kernel", [size, size, depth, filters], 1 / math.sqrt(size * size * depth))
    return tf.nn.conv2d(x, kernel, stride, padding)


def batch_norm_train(var, name, x):
    depth = x.shape[-1]
    gain, shift = var(f"{name}/gain", [depth], 0.1, 1), var(f"{name}/shift", [depth], 0.1)
    y, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x, scale=gain, offset=shift, mean=tf.zeros([0]), variance=tf.zeros([0]), epsilon=1e-3, is_training=True)
    moving_mean = var(f"{name}/moving_mean", [depth], 0.1, train=False)
    moving_var = var(f"{name}/moving_var", [depth], 0.05, 1, train=False)
    var.updates += [lambda: moving_mean.assign_sub((moving_mean - mean) * 0.1),
                    lambda: moving_var.assign_sub((moving_var - variance) * 0.1)]
    return y


def batch_norm_infer(var, name, x):
    depth = x.shape[-1]
    return tf.raw_ops.FusedBatchNormV3(
        x=x, scale=var(f"{name}/gain", [depth], 0.1, 1), offset=var(f"{name}/shift", [depth], 0.1),
        mean=var(f"{name}/mean", [depth], 0.1), variance=tf.abs(var(f"{name}/var", [depth], 0.05, 1)),
        epsilon=1e-3, is_training=False)[0]


def sparse_loss(labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


# --- models: (var, inputs) -> loss ---


def mlp(var, x, labels):
    h = dense(var, "hidden", x, 16, tf.nn.relu)
    h = dense(var, "second", h, 12, tf.nn.tanh)
    return sparse_loss(labels, dense(var, "out", h, 5))


def mlp_smooth(var, x, target):
    h = dense(var, "hidden", x, 12, tf.nn.gelu)
    h = dense(var, "second", h, 10, tf.nn.sigmoid)
    y = dense(var, "out", h, 3)
    return tf.reduce_mean(tf.math.squared_difference(y, target)) + 0.01 * tf.nn.l2_loss(y)


def cnn(var, x, labels):
    h = conv(var, "one", x, 8)
    h = tf.nn.relu(batch_norm_train(var, "one/bn", tf.nn.bias_add(h, var("one/bias", [8], 0.1))))
    h = tf.nn.max_pool2d(h, 2, 2, "VALID")
    h = tf.nn.relu(tf.nn.bias_add(conv(var, "two", h, 12, padding="VALID"), var("two/bias", [12], 0.1)))
    h = tf.nn.avg_pool2d(h, 3, 2, "SAME")
    h = tf.nn.depthwise_conv2d(h, var("depth", [3, 3, 12, 1], 0.3), [1, 1, 1, 1], "SAME")
    h = tf.nn.elu(tf.reshape(h, [-1, math.prod(h.shape[1:])]))
    logits = dense(var, "out", h, 4)
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot(labels, 4), logits=logits))


def resnet20(var, x, labels, widths=(8, 12, 16)):
    h = tf.nn.relu(batch_norm_train(var, "stem/bn", conv(var, "stem", x, widths[0])))
    for stage, width in enumerate(widths):
        for block in range(3):
            name, stride = f"s{stage}b{block}", 2 if stage and not block else 1
            r = tf.nn.relu(batch_norm_train(var, f"{name}/bn1", conv(var, f"{name}/c1", h, width, 3, stride)))
            r = batch_norm_train(var, f"{name}/bn2", conv(var, f"{name}/c2", r, width))
            skip = h if h.shape[-1] == width and stride == 1 else conv(var, f"{name}/skip", h, width, 1, stride)
            h = tf.nn.relu(r + skip)
    loss = sparse_loss(labels, dense(var, "out", tf.reduce_mean(h, [1, 2]), 5))
    return loss + 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in var.trained if v.shape.rank == 4])


def cnn_infer(var, x):
    h = tf.nn.relu(batch_norm_infer(var, "bn", conv(var, "one", x, 6)))
    h = tf.nn.max_pool2d(h, 3, 2, "SAME")
    h = tf.nn.relu6(tf.nn.bias_add(conv(var, "two", h, 8, stride=2), var("two/bias", [8], 0.1)))
    h = tf.image.resize(h, [8, 8], "bilinear")
    h = tf.nn.local_response_normalization(tf.pad(h, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT"))
    p = tf.nn.softmax(dense(var, "out", tf.reduce_max(h, [1, 2]), 4))
    top = tf.math.top_k(p, 2)
    return {"p": p, "top": top.values, "which": top.indices}


# --- recurrent ---


def lstm_weights(var, width, units):
    return (var("lstm/kernel", [width + units, 4 * units], 1 / math.sqrt(width + units)),
            var("lstm/bias", [4 * units], 0.1))


def lstm_cell(weights, x, h, c):
    kernel, bias = weights
    i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), kernel), bias), 4, 1)
    c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
    return tf.sigmoid(o) * tf.tanh(c), c


def lstm_unrolled(var, x, labels, units=8):
    weights = lstm_weights(var, x.shape[2], units)
    h = c = tf.zeros([x.shape[0], units])
    states = []
    for step in tf.unstack(x, axis=1):
        h, c = lstm_cell(weights, step, h, c)
        states.append(h)
    return sparse_loss(labels, dense(var, "out", tf.reduce_mean(tf.stack(states, 1), 1), 4))


def lstm_loop(var, x, labels, units=8):
    """States in a TensorArray, as tf.keras.backend.rnn does."""
    weights = lstm_weights(var, x.shape[2], units)
    weights = [tf.identity(w) for w in weights]
    steps = x.shape[1]
    xs = tf.TensorArray(tf.float32, steps, element_shape=[x.shape[0], x.shape[2]]).unstack(tf.transpose(x, [1, 0, 2]))
    hs = tf.TensorArray(tf.float32, steps, element_shape=[x.shape[0], units])

    def body(i, h, c, hs):
        h, c = lstm_cell(weights, xs.read(i), h, c)
        return i + 1, h, c, hs.write(i, h)

    zero = tf.zeros([x.shape[0], units])
    hs = tf.while_loop(lambda i, *_: i < steps, body, (0, zero, zero, hs), maximum_iterations=steps)[3]
    return sparse_loss(labels, dense(var, "out", tf.reduce_mean(hs.stack(), 0), 4))


def lstm_carried(var, x, units=8):
    """Only tensors go round: a loop that XLA can take as it is."""
    weights = [tf.identity(w) for w in lstm_weights(var, x.shape[2], units)]
    steps = x.shape[1]

    def body(i, h, c, total):
        h, c = lstm_cell(weights, tf.gather(x, i, axis=1), h, c)
        return i + 1, h, c, total + h

    zero = tf.zeros([x.shape[0], units])
    _, h, c, total = tf.while_loop(lambda i, *_: i < steps, body, (0, zero, zero, zero))
    return {"h": h, "c": c, "mean": total / tf.cast(steps, tf.float32)}


# --- transformers ---


def attention(var, name, x, heads, mask):
    batch, time, width = x.shape
    size = width // heads

    def split(which):
        y = tf.reshape(dense3(var, f"{name}/{which}", x, width), [batch, time, heads, size])
        return tf.transpose(y, [0, 2, 1, 3])

    q, k, v = split("q"), split("k"), split("v")
    scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(size) + mask
    y = tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3])
    return dense3(var, f"{name}/o", tf.reshape(y, [batch, time, width]), width)


def feed_forward(var, name, x, approximate):
    h = tf.nn.gelu(dense3(var, f"{name}/up", x, 2 * x.shape[-1]), approximate)
    return dense3(var, f"{name}/down", h, x.shape[-1])


def bert_hidden(var, ids, lengths, width=16, heads=2, vocabulary=24, blocks=1, seed=None):
    batch, time = ids.shape
    table = var("words", [vocabulary, width], 0.5)
    x = tf.nn.embedding_lookup(table, ids) + var("places", [time, width], 0.3)
    x = layer_norm(var, "norm", x)
    here = tf.cast(tf.range(time)[None, :] < lengths[:, None], tf.float32)
    mask = ((1.0 - here) * -10000.0)[:, None, None, :]
    for b in range(blocks):
        y = attention(var, f"b{b}/attend", x, heads, mask)
        if seed is not None:
            keep = tf.random.stateless_uniform(y.shape, seed, alg="philox") >= 0.1
            y = tf.where(keep, y / 0.9, tf.zeros_like(y))
        x = layer_norm(var, f"b{b}/norm1", x + y)
        x = layer_norm(var, f"b{b}/norm2", x + feed_forward(var, f"b{b}/ff", x, False))
    return x, table


def bert_train(var, ids, lengths, places, words, seed):
    """The loss of masked words, whose places are fed."""
    x, table = bert_hidden(var, ids, lengths, seed=seed)
    picked = tf.gather_nd(x, places)
    logits = tf.nn.bias_add(tf.matmul(picked, table, transpose_b=True), var("out/bias", [table.shape[0]], 0.1))
    log_p = tf.nn.log_softmax(logits)
    one_hot = tf.one_hot(words, table.shape[0])
    return tf.reduce_mean(-tf.reduce_sum(log_p * one_hot, -1))


def bert_infer(var, ids, lengths):
    x, _ = bert_hidden(var, ids, lengths, blocks=2)
    pooled = tf.tanh(dense(var, "pool", x[:, 0], 16))
    return {"p": tf.nn.softmax(dense(var, "out", pooled, 3)), "hidden": tf.reduce_sum(x, 1)}


def gpt_infer(var, ids, width=16, heads=2, vocabulary=20):
    batch, time = ids.shape
    table = var("words", [vocabulary, width], 0.5)
    x = tf.gather(table, ids) + var("places", [time, width], 0.3)
    i = tf.range(time)
    mask = tf.where(i[:, None] >= i[None, :], 0.0, -1e9)
    for b in range(2):
        x = x + attention(var, f"b{b}/attend", layer_norm(var, f"b{b}/norm1", x), heads, mask)
        x = x + feed_forward(var, f"b{b}/ff", layer_norm(var, f"b{b}/norm2", x), True)
    logits = tf.einsum("btd,vd->btv", layer_norm(var, "norm", x), table)
    return {"logits": logits[:, -1], "next": tf.argmax(logits[:, -1], -1, tf.int32)}


def gpt_decode(var, word, at, time=20, width=16, heads=2, vocabulary=20):
    """One token a step; keys and values of the earlier ones are in variables."""
    batch, size = word.shape[0], width // heads
    table = var("words", [vocabulary, width], 0.5)
    x = tf.gather(table, word) + tf.gather(var("places", [time, width], 0.3), at)
    y = layer_norm(var, "norm1", x)
    caches = []
    for which in "kv":
        cache = var(f"cache/{which}", [batch, time, heads, size], 0.0, train=False)
        new = tf.reshape(dense(var, which, y, width), [batch, 1, heads, size])
        cell = tf.one_hot(at, time)[None, :, None, None]
        caches.append(cache.assign(cache * (1.0 - cell) + new * cell, read_value=False) or cache)
    with tf.control_dependencies([c for c in caches if isinstance(c, tf.Operation)]):
        k, v = [variable.read_value() for variable in var.others]
    q = tf.reshape(dense(var, "q", y, width), [batch, heads, size])
    scores = tf.einsum("bhd,bthd->bht", q, k) / math.sqrt(size)
    scores = tf.where(tf.range(time) <= at, scores, -1e9)
    x = x + dense(var, "o", tf.reshape(tf.einsum("bht,bthd->bhd", tf.nn.softmax(scores), v), [batch, width]), width)
    logits = tf.matmul(layer_norm(var, "norm2", x), table, transpose_b=True)
    return {"logits": logits, "next": tf.argmax(logits, -1, tf.int32)}
