"""More models for make_goldens.py: sequences, searches, signals."""
import math

import tensorflow as tf

from tf_models import dense, dense3, layer_norm, sparse_loss
from tf_vision import brief


def heads_of(x, heads):
    shape = tf.shape(x)
    return tf.transpose(tf.reshape(x, [shape[0], shape[1], heads, x.shape[-1] // heads]), [0, 2, 1, 3])


def attend(var, name, x, memory, mask, heads=2):
    width = x.shape[-1]
    q = heads_of(dense3(var, f"{name}/q", x, width), heads)
    k = heads_of(dense3(var, f"{name}/k", memory, width), heads)
    v = heads_of(dense3(var, f"{name}/v", memory, width), heads)
    p = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / math.sqrt(width // heads) + mask)
    y = tf.transpose(tf.matmul(p, v), [0, 2, 1, 3])
    shape = tf.shape(y)
    return dense3(var, f"{name}/o", tf.ensure_shape(tf.reshape(y, [shape[0], shape[1], width]), [None, None, width]), width)


def places(length, width):
    """Sines and cosines."""
    angle = tf.cast(tf.range(length), tf.float32)[:, None] * tf.exp(-tf.range(0, width, 2, tf.float32) * (math.log(1e4) / width))
    return tf.concat([tf.sin(angle), tf.cos(angle)], -1)


def translate(var, source, target, width=12, words=20):
    """Encoder and decoder; 0 pads, the last word of the target is only predicted."""
    table = var("words", [words, width], 0.4)

    def embedded(ids):
        return tf.nn.embedding_lookup(table, ids) * math.sqrt(width) + places(tf.shape(ids)[1], width)

    padding = tf.cast(tf.equal(source, 0), tf.float32)[:, None, None, :] * -1e9
    x = embedded(source)
    x = layer_norm(var, "e/n1", x + attend(var, "e/attend", x, x, padding))
    x = layer_norm(var, "e/n2", x + dense3(var, "e/down", tf.nn.relu(dense3(var, "e/up", x, 24)), width))
    given, wanted = target[:, :-1], target[:, 1:]
    n = tf.shape(given)[1]
    later = (1 - tf.linalg.band_part(tf.ones([n, n]), -1, 0)) * -1e9
    y = embedded(given)
    y = layer_norm(var, "d/n1", y + attend(var, "d/self", y, y, later))
    y = layer_norm(var, "d/n2", y + attend(var, "d/cross", y, x, padding))
    y = layer_norm(var, "d/n3", y + dense3(var, "d/down", tf.nn.relu(dense3(var, "d/up", y, 24)), width))
    logits = tf.einsum("btd,wd->btw", y, table)
    smooth = tf.one_hot(wanted, words, 0.9, 0.1 / (words - 1))
    loss = tf.nn.softmax_cross_entropy_with_logits(labels=smooth, logits=logits)
    here = tf.cast(tf.not_equal(wanted, 0), tf.float32)
    return tf.math.divide_no_nan(tf.reduce_sum(loss * here), tf.reduce_sum(here))


def gru_cell(weights, x, h):
    kernel, recurrent, bias = weights
    a, b = tf.matmul(x, kernel) + bias[0], tf.matmul(h, recurrent) + bias[1]
    ax, rx, nx = tf.split(a, 3, -1)
    ah, rh, nh = tf.split(b, 3, -1)
    z = tf.sigmoid(ax + ah)
    return z * h + (1 - z) * tf.tanh(nx + tf.sigmoid(rx + rh) * nh)


def bidirectional_gru(var, x, lengths, labels, units=6):
    """Forth, and back over what is there of each sequence; states of steps that are not there stay."""
    mask = tf.sequence_mask(lengths, x.shape[1])

    def direction(name, xs):
        w = [tf.identity(var(f"{name}/{n}", s, 0.3)) for n, s in (("k", [x.shape[2], 3 * units]), ("r", [units, 3 * units]), ("b", [2, 3 * units]))]
        steps = tf.shape(xs)[1]
        inputs = tf.TensorArray(tf.float32, steps, element_shape=[None, x.shape[2]]).unstack(tf.transpose(xs, [1, 0, 2]))
        here = tf.TensorArray(tf.bool, steps, element_shape=[None]).unstack(tf.transpose(mask))
        outputs = tf.TensorArray(tf.float32, steps, element_shape=[None, units])

        def body(t, h, out):
            new = tf.where(here.read(t)[:, None], gru_cell(w, inputs.read(t), h), h)
            return t + 1, new, out.write(t, new)

        zero = tf.zeros([tf.shape(xs)[0], units])
        _, last, out = tf.while_loop(lambda t, *_: t < steps, body, (0, zero, outputs),
                                     shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, units]), tf.TensorShape(None)))
        return tf.transpose(out.stack(), [1, 0, 2]), last

    forth, last = direction("forth", x)
    back, first = direction("back", tf.reverse_sequence(x, lengths, 1, 0))
    back = tf.reverse_sequence(back, lengths, 1, 0)
    both = tf.concat([forth, back], -1) * tf.cast(mask, tf.float32)[:, :, None]
    mean = tf.reduce_sum(both, 1) / tf.cast(lengths, tf.float32)[:, None]
    return sparse_loss(labels, dense(var, "out", tf.concat([tf.ensure_shape(mean, [None, 2 * units]), last, first], -1), 4))


def scanned_rnn(var, x, labels, units=6):
    w, u = var("w", [x.shape[2], units], 0.4), var("u", [units, units], 0.4)
    h = tf.scan(lambda h, e: tf.tanh(tf.matmul(e, w) + tf.matmul(h, u)), tf.transpose(x, [1, 0, 2]), tf.zeros([3, units]))
    last = tf.ensure_shape(h[-1], [3, units])
    mean = tf.foldl(lambda s, e: s + e * 0.5, h, tf.zeros([3, units]))
    return sparse_loss(labels, dense(var, "out", last + tf.ensure_shape(mean, [3, units]), 4))


def word2vec(var, words, context, sampled):
    """Sampled softmax: gradients of both tables are rows."""
    inner, outer = var("inner", [30, 8], 0.5), var("outer", [30, 8], 0.5)
    bias = var("bias", [30], 0.1)
    h = tf.nn.embedding_lookup(inner, words)
    values = (tf.cast(sampled, tf.int64), tf.fill([tf.shape(words)[0], 1], 0.2), tf.fill([8], 0.3))
    context = tf.cast(context, tf.int64)[:, None]
    full = tf.nn.sampled_softmax_loss(outer, bias, context, h, 8, 30, sampled_values=values)
    nce = tf.nn.nce_loss(outer, bias, context, h, 8, 30, sampled_values=values)
    return tf.reduce_mean(full) + 0.1 * tf.reduce_mean(nce)


def crf(var, x, tags, lengths, n=4):
    """A chain's negative log likelihood, by scan."""
    unary = tf.tensordot(x, var("w", [x.shape[2], n], 0.4), 1)
    move = var("move", [n, n], 0.3)
    steps = tf.transpose(unary, [1, 0, 2])
    here = tf.transpose(tf.sequence_mask(lengths, x.shape[1]))

    def body(alpha, args):
        score, on = args
        new = tf.reduce_logsumexp(alpha[:, :, None] + move[None], 1) + score
        return tf.where(on[:, None], new, alpha)

    alphas = tf.scan(body, (steps[1:], here[1:]), steps[0])
    norm = tf.reduce_logsumexp(alphas[-1], -1)
    mask = tf.cast(tf.transpose(here), tf.float32)
    own = tf.reduce_sum(tf.gather(unary, tags, batch_dims=2, axis=2) * mask, 1)
    own += tf.reduce_sum(tf.gather_nd(move, tf.stack([tags[:, :-1], tags[:, 1:]], -1)) * mask[:, 1:], 1)
    return tf.reduce_mean(norm - own)


def viterbi(var, x, n=4):
    unary = tf.tensordot(x, var("w", [x.shape[2], n], 0.8), 1)
    move = var("move", [n, n], 0.5)
    steps = tf.transpose(unary, [1, 0, 2])

    def forth(carried, score):
        total = carried[0][:, :, None] + move[None]
        return tf.reduce_max(total, 1) + score, tf.argmax(total, 1, tf.int32)

    best, where = tf.scan(forth, steps[1:], (steps[0], tf.zeros([3, n], tf.int32)))
    last = tf.argmax(best[-1], -1, tf.int32)
    path = tf.scan(lambda tag, back: tf.gather(back, tag, batch_dims=1), where, last, reverse=True)
    return {"path": tf.transpose(tf.concat([path, last[None]], 0)), "score": tf.reduce_max(best[-1], -1)}


def ctc(var, x, labels, lengths):
    logits = dense3(var, "out", tf.tanh(dense3(var, "in", x, 8)), 6)
    loss = tf.nn.ctc_loss(labels + 1, tf.transpose(logits, [1, 0, 2]), lengths, tf.fill([3], x.shape[1]), logits_time_major=True, blank_index=0)
    return tf.reduce_mean(loss)


def beam_search(var, word, beams=3, time=6, width=8, words=12, end=0):
    """Sequences grow in a loop; hypotheses are chosen with top_k and gathered."""
    table, u = var("words", [words, width], 0.8), var("u", [width, width], 0.6)
    batch = tf.shape(word)[0]
    ids = tf.tile(word[:, None, None], [1, beams, 1])
    score = tf.tile(tf.constant([[0.0] + [-1e9] * (beams - 1)]), [batch, 1])
    state = tf.zeros([batch, beams, width])
    done = tf.zeros([batch, beams], tf.bool)

    def more(i, ids, score, state, done):
        return tf.logical_and(i < time, tf.logical_not(tf.reduce_all(done)))

    def body(i, ids, score, state, done):
        state = tf.tanh(tf.gather(table, ids[:, :, -1]) + tf.einsum("bkd,de->bke", state, u))
        step = tf.nn.log_softmax(tf.einsum("bkd,wd->bkw", state, table))
        only = tf.one_hot(end, words, 0.0, -1e9)
        step = tf.where(done[:, :, None], only, step)
        total = tf.reshape(score[:, :, None] + step, [batch, beams * words])
        score, which = tf.nn.top_k(total, beams)
        beam, new = which // words, which % words
        at = tf.stack([tf.tile(tf.range(batch)[:, None], [1, beams]), beam], -1)
        ids = tf.concat([tf.gather_nd(ids, at), new[:, :, None]], -1)
        return i + 1, ids, score, tf.gather_nd(state, at), tf.logical_or(tf.gather_nd(done, at), tf.equal(new, end))

    any_shape = (tf.TensorShape([]), tf.TensorShape([None, beams, None]), tf.TensorShape([None, beams]), tf.TensorShape([None, beams, width]), tf.TensorShape([None, beams]))
    n, ids, score, _, done = tf.while_loop(more, body, (0, ids, score, state, done), shape_invariants=any_shape)
    ids = tf.pad(ids, [[0, 0], [0, 0], [0, time - n]])
    lengths = tf.reduce_sum(tf.cast(tf.not_equal(ids, end), tf.int32), -1)
    return {"ids": ids, "score": score, "lengths": lengths, "n": n, "done": done}


def greedy_attention(var, x, width=8, words=10, time=5):
    """Words come one after the other, each looks at all of the input (Bahdanau); the loop has a TensorArray."""
    memory = dense3(var, "memory", x, width)
    table, v = var("words", [words, width], 0.7), var("v", [width], 0.5)
    q, w, out = var("q", [width, width], 0.4), var("w", [2 * width, width], 0.4), var("out", [width, words], 0.8)
    found = tf.TensorArray(tf.int32, time, element_shape=[3])
    weights = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[3, None])

    def body(t, word, h, found, weights):
        score = tf.reduce_sum(tf.tanh(memory + tf.matmul(h, q)[:, None]) * v, -1)
        p = tf.nn.softmax(score)
        context = tf.matmul(p[:, None], memory)[:, 0]
        h = tf.tanh(tf.matmul(tf.concat([tf.gather(table, word), context], -1), w))
        word = tf.argmax(tf.matmul(h, out), -1, tf.int32)
        return t + 1, word, h, found.write(t, word), weights.write(t, p)

    start = (0, tf.ones([3], tf.int32), tf.zeros([3, width]), found, weights)
    result = tf.while_loop(lambda t, *_: t < time, body, start)
    return {"words": tf.transpose(result[3].stack()), "weights": result[4].stack()}


def wavenet(var, x):
    """Causal convolutions that see further and further, gated. (TensorFlow's CPU has no gradients of these.)"""
    h = tf.nn.conv1d(x, var("in", [1, x.shape[2], 6], 0.4), 1, "VALID")
    total = 0.0
    for i in range(3):
        wide = 2 ** i
        padded = tf.pad(h, [[0, 0], [wide, 0], [0, 0]])
        y = tf.nn.conv1d(padded, var(f"l{i}/kernel", [2, 6, 12], 0.3), 1, "VALID", dilations=wide)
        y = tf.ensure_shape(y, [None, x.shape[1], 12])
        y = tf.tanh(y[..., :6]) * tf.sigmoid(y[..., 6:])
        y = tf.nn.conv1d(y, var(f"l{i}/mix", [1, 6, 6], 0.3), 1, "VALID")
        total, h = total + y, h + y
    return {"p": tf.nn.softmax(dense(var, "out", tf.reduce_mean(tf.nn.relu(total), 1), 4)), "h": h}


def spectrogram(var, sound):
    """Frames, Fourier transforms, a mel scale, a cosine transform."""
    window = tf.signal.hann_window(16)
    spectrum = tf.signal.stft(sound, 16, 8, 16, lambda n, dtype: tf.cast(window, dtype))
    power = tf.abs(spectrum) ** 2
    mel = tf.signal.linear_to_mel_weight_matrix(6, 9, 1000, 60.0, 450.0)
    logs = tf.math.log(tf.tensordot(power, mel, 1) + 1e-3)
    mfcc = tf.signal.mfccs_from_log_mel_spectrograms(logs)[..., :4]
    back = tf.signal.inverse_stft(spectrum, 16, 8, 16, tf.signal.inverse_stft_window_fn(8))
    return brief({"logs": logs, "mfcc": mfcc, "back": back, "phase": tf.math.cos(tf.math.angle(spectrum)),
            "frames": tf.signal.frame(sound, 5, 3, pad_end=True)[:, -1], "added": tf.signal.overlap_and_add(power, 4)})


def layer_norm_lstm(var, x, labels, units=6):
    """A cell with norms inside, its loop written by AutoGraph."""
    w = var("kernel", [x.shape[2] + units, 4 * units], 0.3)
    gain = var("gain", [4, units], 0.1, 1.0)

    def norm(y, k):
        mean, variance = tf.nn.moments(y, [-1], keepdims=True)
        return (y - mean) * tf.math.rsqrt(variance + 1e-3) * gain[k]

    @tf.autograph.experimental.do_not_convert
    def cell(e, h, c):
        i, j, f, o = tf.split(tf.matmul(tf.concat([e, h], 1), w), 4, 1)
        c = tf.sigmoid(norm(f, 0) + 1) * c + tf.sigmoid(norm(i, 1)) * tf.tanh(norm(j, 2))
        return tf.sigmoid(norm(o, 3)) * tf.tanh(c), c

    def loop(x):
        h = c = tf.zeros([3, units])
        total = tf.zeros([])
        for t in tf.range(tf.shape(x)[1]):
            h, c = cell(x[:, t], h, c)
            total += tf.reduce_mean(tf.square(h))
            if total > 100.0:
                break
        return h, total

    h, total = tf.autograph.to_graph(loop)(x)
    return sparse_loss(labels, dense(var, "out", h, 4)) + 0.1 * total
