"""More models for make_goldens.py: tables and graphs, physics, rewards, statistics, mixed precision."""
import math

import tensorflow as tf

from tf_models import dense, sparse_loss


def recommender(var, users, items, price, rating):
    """Wide and deep, a factorisation machine, buckets, a cross layer; tables are updated by row."""
    a = tf.nn.embedding_lookup(var("users", [20, 4], 0.5), users)
    b = tf.nn.embedding_lookup(var("items", [30, 4], 0.5), items % 30)
    bucket = tf.raw_ops.Bucketize(input=price, boundaries=[-1.0, 0.0, 1.0])
    c = tf.gather(var("price", [4, 4], 0.5), bucket)
    wide = tf.reduce_sum(tf.gather(var("wide", [600, 1], 0.1), users * 30 + items % 30), -1)
    fields = tf.stack([a, b, c], 1)
    pairs = 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(fields, 1)) - tf.reduce_sum(tf.square(fields), 1), -1)
    x = tf.reshape(fields, [tf.shape(users)[0], 12])
    x = tf.ensure_shape(x, [None, 12])
    crossed = x * (tf.matmul(x, var("cross", [12, 1], 0.3))) + x
    deep = dense(var, "out", dense(var, "deep", tf.concat([x, crossed], -1), 8, tf.nn.relu), 1)[:, 0]
    return tf.reduce_mean(tf.square(wide + pairs + deep - rating))


def bags(var, ids, rows, weights):
    """Bags of words: sparse ids with weights, means of rows."""
    table = var("table", [20, 5], 0.5)
    rows = tf.sort(rows)
    order = tf.stack([tf.cast(rows, tf.int64), tf.cast(tf.range(9), tf.int64)], 1)
    sparse = tf.SparseTensor(order, tf.cast(ids, tf.int64), [4, 9])
    weighted = tf.SparseTensor(order, tf.abs(weights) + 0.1, [4, 9])
    mean = tf.nn.embedding_lookup_sparse(table, sparse, weighted, combiner="mean")
    total = tf.nn.safe_embedding_lookup_sparse(table, sparse, combiner="sum")
    return tf.reduce_mean(tf.square(mean)) + tf.reduce_mean(tf.square(total))


def graph_network(var, x, sources, targets, graphs, labels):
    """Messages along edges, weights by attention over the edges that arrive, graphs by their nodes."""
    n = tf.shape(x)[0]
    h = dense(var, "in", x, 6)
    for i in range(2):
        a, b = tf.gather(h, sources), tf.gather(h, targets)
        score = tf.nn.leaky_relu(tf.reduce_sum(tf.concat([a, b], -1) * var(f"a{i}", [12], 0.3), -1), 0.2)
        top = tf.math.unsorted_segment_max(score, targets, n)
        p = tf.exp(score - tf.gather(top, targets))
        p = p / (tf.gather(tf.math.unsorted_segment_sum(p, targets, n), targets) + 1e-9)
        message = tf.math.unsorted_segment_sum(p[:, None] * dense(var, f"m{i}", a, 6), targets, n)
        degree = tf.math.unsorted_segment_sum(tf.ones_like(score), targets, n)
        h = tf.nn.elu(h + message + tf.math.unsorted_segment_mean(a, targets, n) / (degree[:, None] + 1.0))
    graphs = tf.sort(graphs)
    pooled = tf.concat([tf.math.segment_sum(h, graphs), tf.math.segment_mean(h, graphs), tf.math.segment_max(h, graphs)], -1)
    present = tf.unique(graphs).y
    pooled = tf.gather(tf.pad(pooled, [[0, 3], [0, 0]]), present)
    return sparse_loss(tf.gather(labels, present), dense(var, "out", tf.ensure_shape(pooled, [None, 18]), 3))


def sparse_adjacency(var, x, edges):
    """A product with a sparse matrix, made dense too."""
    edges = tf.cast(tf.sort(edges[:, 0] * 6 + edges[:, 1]), tf.int64)
    edges = tf.unique(edges).y
    at = tf.stack([edges // 6, edges % 6], 1)
    sparse = tf.SparseTensor(at, tf.ones_like(edges, tf.float32), [6, 6])
    y = tf.sparse.sparse_dense_matmul(sparse, x)
    d = tf.sparse.to_dense(sparse)
    return {"y": y, "dense": tf.matmul(d, x), "degrees": tf.sparse.reduce_sum(sparse, 1), "mask": tf.boolean_mask(x, tf.reduce_sum(d, 1) > 1)[:1]}


def q_learning(var, state, action, reward, after, done):
    """Double Q-learning; every third step the second network becomes the first."""
    ours = [var("w1", [6, 8], 0.4), var("b1", [8], 0.1), var("w2", [8, 3], 0.4)]
    theirs = [var(f"t/{i}", w.shape, 0.3, train=False) for i, w in enumerate(ours)]
    step = var("step", [], 0.0, train=False)

    def q(w, x):
        return tf.matmul(tf.nn.relu(tf.matmul(x, w[0]) + w[1]), w[2])

    best = tf.argmax(q(ours, after), -1, tf.int32)
    value = tf.gather(q(theirs, after), best, batch_dims=1)
    wanted = tf.stop_gradient(reward + 0.9 * (1 - tf.cast(done > 1, tf.float32)) * value)
    rows = tf.stack([tf.range(tf.shape(action)[0]), action], 1)
    error = tf.gather_nd(q(ours, state), rows) - wanted
    huber = tf.where(tf.abs(error) < 1.0, 0.5 * error ** 2, tf.abs(error) - 0.5)

    def copied():
        with tf.control_dependencies([t.assign(0.5 * t + 0.5 * w, read_value=False) for t, w in zip(theirs, ours)]):
            return tf.constant(1.0)

    def update():
        new = step.assign_add(1.0)
        with tf.control_dependencies([new]):
            return tf.cond(tf.equal(tf.math.floormod(new, 3.0), 0.0), copied, lambda: tf.constant(0.0)).op

    var.updates.append(update)
    return tf.reduce_mean(huber)


def policy(var, states, rewards):
    """Returns and advantages by scans, entropies, a ratio that is clipped; actions are drawn."""
    logits = dense(var, "pi", tf.tanh(dense(var, "h", states, 8)), 3)
    value = dense(var, "v", states, 1)[:, 0]
    returns = tf.scan(lambda r, x: x + 0.9 * r, rewards, tf.zeros([]), reverse=True)
    drawn = tf.random.stateless_uniform(tf.shape(logits), [3, 4], alg="philox")
    action = tf.argmax(logits - tf.math.log(-tf.math.log(drawn)), -1, tf.int32)
    log_p = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=action, logits=logits)
    advantage = tf.stop_gradient(returns - value)
    advantage = (advantage - tf.reduce_mean(advantage)) / (tf.math.reduce_std(advantage) + 1e-6)
    ratio = tf.exp(log_p - tf.stop_gradient(log_p) + 0.1)
    clipped = tf.minimum(ratio * advantage, tf.clip_by_value(ratio, 0.8, 1.2) * advantage)
    entropy = -tf.reduce_sum(tf.nn.softmax(logits) * tf.nn.log_softmax(logits), -1)
    return -tf.reduce_mean(clipped) + 0.5 * tf.reduce_mean((returns - value) ** 2) - 0.01 * tf.reduce_mean(entropy)


def experts(var, x, labels):
    """Each example goes to its two best experts, as far as they have room."""
    n, e, room = tf.shape(x)[0], 3, 4
    gates = tf.nn.softmax(dense(var, "gate", x, e))
    top, which = tf.math.top_k(gates, 2)
    top = top / tf.reduce_sum(top, -1, keepdims=True)
    y = tf.zeros([n, 6])
    for k in range(2):
        on = tf.one_hot(which[:, k], e, dtype=tf.int32)
        at = tf.cumsum(on, 0, exclusive=True) * on
        fits = tf.cast(tf.logical_and(tf.less(at, room), on > 0), tf.float32)
        send = fits[:, :, None] * tf.one_hot(tf.reduce_sum(at, -1), room)[:, None]
        sent = tf.einsum("nec,nd->ecd", send, x)
        h = tf.nn.relu(tf.einsum("ecd,edf->ecf", sent, var(f"w{k}", [e, x.shape[1], 6], 0.3)))
        y += tf.einsum("nec,ecf,n->nf", send, h, top[:, k])
    balance = tf.reduce_sum(tf.reduce_mean(gates, 0) * tf.reduce_mean(tf.one_hot(which[:, 0], e), 0)) * e
    return sparse_loss(labels, dense(var, "out", tf.ensure_shape(y, [None, 6]), 5)) + 0.01 * balance


def gaussian_process(var, x, y):
    """Its likelihood, by a Cholesky decomposition; and what it predicts."""
    length, noise = tf.exp(var("length", [], 0.1)), tf.exp(var("noise", [], 0.1, -1.0))
    far = tf.reduce_sum(tf.math.squared_difference(x[:, None], x[None]), -1)
    k = tf.exp(-0.5 * far / length ** 2) + noise * tf.eye(tf.shape(x)[0])
    l = tf.linalg.cholesky(k)
    a = tf.linalg.cholesky_solve(l, y[:, None])
    fit = 0.5 * tf.reduce_sum(y[:, None] * a) + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(l)))
    return fit + 0.01 * tf.linalg.logdet(k) + 0.001 * tf.linalg.trace(tf.linalg.inv(k))


def kalman(var, z):
    """A filter: small matrices, in a loop."""
    f = tf.constant([[1.0, 0.1], [0.0, 1.0]]) + var("f", [2, 2], 0.01)
    h, q, r = tf.constant([[1.0, 0.0]]), 0.01 * tf.eye(2), tf.constant([[0.1]])

    def step(carried, z):
        x, p = carried
        x, p = tf.matmul(f, x), tf.matmul(tf.matmul(f, p), f, transpose_b=True) + q
        s = tf.matmul(tf.matmul(h, p), h, transpose_b=True) + r
        k = tf.transpose(tf.linalg.solve(s, tf.matmul(h, p)))
        x = x + tf.matmul(k, z - tf.matmul(h, x))
        return x, tf.matmul(tf.eye(2) - tf.matmul(k, h), p)

    x, p = tf.scan(step, z[:, None, None], (tf.zeros([2, 1]), tf.eye(2)))
    return {"x": x[..., 0], "p": p, "det": tf.linalg.det(p)}


def physics(var, points):
    """A network whose second derivatives must fulfil an equation."""
    w, b, v = var("w", [1, 8], 0.8), var("b", [8], 0.3), var("v", [8, 1], 0.5)

    def u(t):
        return tf.matmul(tf.tanh(tf.matmul(t, w) + b), v)

    first = tf.gradients(u(points), points)[0]
    second = tf.gradients(first, points)[0]
    start = tf.zeros([1, 1])
    at = tf.gradients(u(start), start)[0]
    return tf.reduce_mean((second + u(points)) ** 2) + tf.reduce_sum(u(start) ** 2) + tf.reduce_sum((at - 1) ** 2)


def jacobians(var, x):
    """Derivatives of each output by each input, a product with second derivatives, a map that is vectorised."""
    w, v = var("w", [4, 6], 0.5), var("v", [6, 3], 0.5)
    y = tf.matmul(tf.nn.softplus(tf.matmul(x, w)), v)
    loss = tf.reduce_sum(tf.square(y))
    g = tf.gradients(loss, w)[0]
    product = tf.gradients(tf.reduce_sum(g * tf.stop_gradient(w)), w)[0]
    return {"jacobian": tf.stack([tf.gradients(y[:, i], x)[0] for i in range(3)], 1), "product": product, "each": tf.vectorized_map(lambda r: tf.linalg.matvec(w, tf.nn.relu(tf.linalg.matvec(w, r, transpose_a=True))), x),
            "slow": tf.stack([tf.gradients(y[0, i], v)[0] for i in range(3)])}


def integrate(var, x):
    """Runge and Kutta in a loop until a time is reached, gradients through it."""
    a = var("a", [3, 3], 0.4)

    def f(y):
        return tf.tanh(tf.matmul(y, a)) - 0.1 * y

    def body(t, y):
        k1 = f(y)
        k2 = f(y + 0.05 * k1)
        k3 = f(y + 0.05 * k2)
        k4 = f(y + 0.1 * k3)
        return t + 0.1, y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    _, y = tf.while_loop(lambda t, y: t < 0.75, body, (0.0, x), maximum_iterations=20)
    return tf.reduce_mean(y ** 2) + tf.reduce_max(y)


def mixed_precision(var, x, labels, dtype=tf.bfloat16):
    """Computed in half the bits; gradients are scaled, and steps with overflow left out."""
    scale, good = var("scale", [], 0.0, 1024.0, train=False), var("good", [], 0.0, train=False)
    kernel, bias = var("kernel", [3, 3, 3, 6], 0.3), var("bias", [6], 0.1)
    w = var("w", [6, 5], 0.4)
    h = tf.nn.conv2d(tf.cast(x, dtype), tf.cast(kernel, dtype), 2, "SAME")
    h = tf.nn.relu(tf.nn.bias_add(h, tf.cast(bias, dtype)))
    logits = tf.matmul(tf.reduce_mean(h, [1, 2]), tf.cast(w, dtype))
    loss = sparse_loss(labels, tf.cast(logits, tf.float32))
    gradients = [g / scale for g in tf.gradients(loss * scale, var.trained)]
    finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g in gradients])

    def apply():
        done = [v.assign_sub(0.1 * g, read_value=False) for v, g in zip(var.trained, gradients)]
        grown = good.read_value() >= 2.0
        done += [scale.assign(tf.where(grown, scale * 2.0, scale), read_value=False), good.assign(tf.where(grown, 0.0, good + 1.0), read_value=False)]
        with tf.control_dependencies(done):
            return tf.constant(True)

    def skip():
        with tf.control_dependencies([scale.assign(scale * 0.5, read_value=False), good.assign(0.0, read_value=False)]):
            return tf.constant(False)

    applied = tf.cond(finite, apply, skip)
    with tf.control_dependencies([applied]):
        return {"loss": loss, "scale": scale.read_value(), "applied": applied, "checksum": var.checksum()}


def k_means(var, x):
    """Points to the nearest centre; centres without points stay; as many rounds as they move."""
    start = tf.identity(x[:3])

    def body(i, c, moved):
        far = tf.reduce_sum((x[:, None] - c[None]) ** 2, -1)
        near = tf.argmin(far, -1, tf.int32)
        count = tf.math.bincount(near, minlength=3, maxlength=3, dtype=tf.float32)
        new = tf.math.unsorted_segment_sum(x, near, 3) / tf.maximum(count, 1.0)[:, None]
        new = tf.where((count > 0)[:, None], new, c)
        return i + 1, new, tf.norm(new - c)

    i, c, moved = tf.while_loop(lambda i, c, m: tf.logical_and(i < 10, m > 1e-3), body, (0, start, tf.constant(1.0)))
    near = tf.argmin(tf.reduce_sum((x[:, None] - c[None]) ** 2, -1), -1)
    values, places, counts = tf.unique_with_counts(near)
    return {"centres": c, "rounds": i, "counts": tf.tensor_scatter_nd_update(tf.zeros([3], tf.int32), values[:, None], counts), "places": places}


def metrics(var, labels, scores):
    """Precision, recall, areas under curves, confusion, over all steps so far."""
    predicted = tf.argmax(scores, -1, tf.int32)
    total = var("total", [4, 4], 0.0, train=False)
    confusion = tf.math.confusion_matrix(labels, predicted, 4, dtype=tf.float32)
    with tf.control_dependencies([total.assign_add(confusion, read_value=False)]):
        c = total.read_value()
    right = tf.linalg.diag_part(c)
    precision, recall = tf.math.divide_no_nan(right, tf.reduce_sum(c, 0)), tf.math.divide_no_nan(right, tf.reduce_sum(c, 1))
    thresholds = tf.linspace(0.0, 1.0, 7)
    p = tf.nn.softmax(scores)[:, 0]
    above = p[None] > thresholds[:, None]
    real = tf.equal(labels, 0)[None]
    tp = tf.reduce_sum(tf.cast(tf.logical_and(above, real), tf.float32), 1)
    fp = tf.reduce_sum(tf.cast(tf.logical_and(above, tf.logical_not(real)), tf.float32), 1)
    auc = tf.reduce_sum((tp[:-1] + tp[1:]) * (fp[:-1] - fp[1:])) / 2
    order = tf.argsort(p, direction="DESCENDING", stable=True)
    return {"precision": precision, "recall": recall, "auc": auc, "top": tf.nn.in_top_k(labels, scores, 2), "order": order, "sorted": tf.sort(p),
            "median": tf.gather(tf.sort(p), tf.size(p) // 2), "histogram": tf.histogram_fixed_width(p, [0.0, 1.0], 5),
            "quantile": tf.searchsorted(tf.sort(p), thresholds), "where": tf.reduce_sum(tf.where(p > 0.25)), "set": tf.size(tf.unique(predicted).y)}


def nested(var, x, n):
    """Conditions within loops within conditions, a switch, an early end."""

    def wide(x):
        def body(i, y):
            y = tf.cond(tf.reduce_sum(y) > 0, lambda: y * 0.5 - 0.1, lambda: tf.cond(tf.equal(i % 2, 0), lambda: y + 0.7, lambda: -y))
            return i + 1, tf.switch_case(i % 3, [lambda: y, lambda: tf.reverse(y, [0]), lambda: tf.sin(y)])

        return tf.while_loop(lambda i, y: i < n, body, (0, x))[1]

    y = tf.cond(n > 3, lambda: wide(x), lambda: tf.case([(n < 1, lambda: x), (n < 2, lambda: x * 2.0)], default=lambda: wide(x * 3.0)))
    return {"y": y, "g": tf.gradients(tf.reduce_sum(y * y), x)[0]}


def numbers(var, x, k):
    """Integers, bits, rounding, clocks: preprocessing without strings."""
    day, hour = k // 24, k % 24
    parts = tf.bitwise.bitwise_and(tf.bitwise.right_shift(k[:, None], tf.range(8)), 1)
    hashed = tf.bitwise.bitwise_xor(k * 16777619, tf.bitwise.right_shift(k, 3)) % 97
    grey = tf.bitwise.bitwise_xor(k, tf.bitwise.right_shift(k, 1))
    clean = tf.where(tf.math.is_nan(tf.sqrt(x)), tf.zeros_like(x), tf.sqrt(tf.abs(x)))
    low, high = tf.reduce_min(x, 0), tf.reduce_max(x, 0)
    scaled = tf.math.divide_no_nan(x - low, high - low)
    as64 = tf.cast(k, tf.int64) * 1000003 - 7
    clock = 2 * math.pi * tf.cast(hour, tf.float64) / 24
    return {"day": day, "parts": parts, "hashed": hashed, "grey": grey, "clean": clean, "scaled": scaled, "as64": as64 % 1009,
            "clock": tf.stack([tf.sin(clock), tf.cos(clock)], -1), "round": tf.round(x * 2), "floor": tf.math.floordiv(x, 0.3),
            "mod": tf.math.floormod(x, 0.7), "small": tf.cast(tf.cast(tf.clip_by_value(x * 40, -100, 100), tf.int8), tf.int32),
            "one": tf.one_hot(hour % 5, 5, on_value=True, off_value=False), "any": tf.reduce_any(x > 1, -1), "prod": tf.reduce_prod(tf.cast(k % 3 + 1, tf.float32)),
            "bits": tf.bitcast(x, tf.int32) // 65536, "pack": tf.bitcast(tf.cast(parts[:, :4], tf.uint8), tf.int32), "dynamic": tf.dynamic_stitch([[0, 2], [1]], [x[:2], x[2:3]]),
            "parted": tf.dynamic_partition(x, tf.cast(x[:, 0] > 0, tf.int32), 2)[1][:, :1]}


def special(var, x):
    """Distributions' densities."""
    p = tf.sigmoid(x)
    a = tf.nn.softplus(x) + 0.5
    gamma = (a - 1) * tf.math.log(p) - p - tf.math.lgamma(a)
    beta = tf.math.lbeta(tf.stack([a, a + 1], -1))
    normal = 0.5 * (1 + tf.math.erf(x / math.sqrt(2)))
    return {"gamma": gamma, "beta": beta, "normal": normal, "digamma": tf.math.digamma(a), "igamma": tf.math.igamma(a, p * 3), "igammac": tf.math.igammac(a, p * 3),
            "betainc": tf.math.betainc(a, a + 1, p), "zeta": tf.math.zeta(a + 1, p + 1), "ndtri": tf.math.ndtri(p), "erfinv": tf.math.erfinv(p * 0.9),
            "bessel": tf.math.bessel_i0e(x) + tf.math.bessel_i1e(x), "g": tf.gradients(tf.reduce_sum(tf.math.igamma(a, p * 3)), x)[0], "poly": tf.math.polygamma(1.0, a)}


def decompositions(var, x):
    """What does not depend on signs of vectors."""
    square = tf.matmul(x, x, transpose_b=True) + tf.eye(4)
    e, v = tf.linalg.eigh(square)
    s, u, w = tf.linalg.svd(x)
    q, r = tf.linalg.qr(x)
    return {"e": e, "back": tf.matmul(v * e[None], v, transpose_b=True), "s": s, "usv": tf.matmul(u * s[None], w, transpose_b=True), "qr": tf.matmul(q, r),
            "pinv": tf.linalg.pinv(x), "lstsq": tf.linalg.lstsq(x, x[:, :1]), "norm": tf.norm(x, 2), "exp": tf.linalg.expm(square * 0.1),
            "g": tf.gradients(tf.reduce_sum(tf.math.log(tf.linalg.eigvalsh(square))), x)[0], "nuclear": tf.gradients(tf.reduce_sum(tf.linalg.svd(x, compute_uv=False)), x)[0]}
