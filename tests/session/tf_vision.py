"""More models for make_goldens.py: images. Like tf_models.py, functions of a variable factory."""
import math

import tensorflow as tf

from tf_models import batch_norm_train, conv, dense, sparse_loss


def brief(fetches):
    """Large ones by four numbers each: two sums, and two with weights that tell places apart."""

    def four(v):
        v = tf.reshape(tf.cast(v, tf.float32), [-1])
        place = tf.cast(tf.range(tf.size(v)), tf.float32)
        return tf.stack([tf.reduce_mean(v), tf.reduce_mean(v * v), tf.reduce_mean(v * tf.sin(place)), tf.reduce_mean(v * tf.cos(place * 0.7))])

    return {name: four(v) if v.shape.num_elements() is None or v.shape.num_elements() > 40 else v for name, v in fetches.items()}


def unet(var, x, target):
    """Down and up again with transposed convolutions; the loss is cross entropy and Dice together."""
    down, skips = x, []
    for level, width in enumerate((4, 6)):
        down = tf.nn.relu(batch_norm_train(var, f"d{level}/bn", conv(var, f"d{level}", down, width)))
        skips.append(down)
        down = tf.nn.max_pool2d(down, 2, 2, "SAME")
    y = tf.nn.relu(conv(var, "bottom", down, 8))
    for level, width in ((1, 6), (0, 4)):
        skip = skips[level]
        shape = tf.concat([tf.shape(y)[:1], tf.shape(skip)[1:3], [width]], 0)
        kernel = var(f"u{level}/kernel", [2, 2, width, y.shape[-1]], 0.3)
        up = tf.nn.conv2d_transpose(y, kernel, shape, [2, 2], "SAME")
        up = tf.ensure_shape(tf.nn.bias_add(up, var(f"u{level}/bias", [width], 0.1)), [None, *skip.shape[1:3], width])
        y = tf.nn.leaky_relu(conv(var, f"u{level}/mix", tf.concat([up, skip], -1), width))
    logits = conv(var, "out", y, 1, 1)[..., 0]
    ce = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=logits))
    p = tf.sigmoid(logits)
    overlap = tf.reduce_sum(p * target, [1, 2])
    dice = 1 - tf.reduce_mean((2 * overlap + 1) / (tf.reduce_sum(p, [1, 2]) + tf.reduce_sum(target, [1, 2]) + 1))
    return ce + dice


def depthwise(var, name, x, stride):
    return tf.nn.depthwise_conv2d(x, var(f"{name}/kernel", [3, 3, x.shape[-1], 1], 0.4), [1, stride, stride, 1], "SAME")


def mobilenet(var, x, labels):
    """Inverted residuals, as in its second version."""
    h = tf.nn.relu6(batch_norm_train(var, "stem/bn", conv(var, "stem", x, 6, stride=2)))
    for i, (width, stride) in enumerate(((6, 1), (8, 2), (8, 1))):
        r = tf.nn.relu6(batch_norm_train(var, f"b{i}/bn1", conv(var, f"b{i}/up", h, 2 * h.shape[-1], 1)))
        r = tf.nn.relu6(batch_norm_train(var, f"b{i}/bn2", depthwise(var, f"b{i}/depth", r, stride)))
        r = batch_norm_train(var, f"b{i}/bn3", conv(var, f"b{i}/down", r, width, 1))
        h = h + r if stride == 1 and h.shape[-1] == width else r
    pooled = tf.reduce_mean(h, [1, 2], keepdims=True)
    logits = tf.squeeze(conv(var, "out", pooled, 5, 1), [1, 2])
    labels = tf.one_hot(labels, 5)
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels * 0.9 + 0.02, logits))


def efficientnet(var, x, labels, seed):
    """Squeeze and excite, swish (a custom gradient), paths dropped at random by example."""
    h = tf.nn.silu(batch_norm_train(var, "stem/bn", conv(var, "stem", x, 8, stride=2)))
    for i in range(2):
        r = tf.nn.silu(batch_norm_train(var, f"b{i}/bn", depthwise(var, f"b{i}/depth", h, 1)))
        s = tf.reduce_mean(r, [1, 2], keepdims=True)
        s = tf.nn.silu(conv(var, f"b{i}/squeeze", s, 2, 1))
        r = r * tf.sigmoid(conv(var, f"b{i}/excite", s, 8, 1))
        r = conv(var, f"b{i}/project", r, 8, 1)
        keep = tf.floor(0.8 + tf.random.stateless_uniform([tf.shape(x)[0], 1, 1, 1], seed + i, alg="philox"))
        h = h + r / 0.8 * keep
    h = tf.nn.experimental.stateless_dropout(tf.reduce_mean(h, [1, 2]), 0.2, seed, rng_alg="philox")
    return sparse_loss(labels, dense(var, "out", h, 5))


def group_norm(var, name, x, groups=2):
    batch = tf.shape(x)[0]
    height, width, depth = x.shape[1:]
    y = tf.reshape(x, tf.stack([batch, height, width, groups, depth // groups]))
    mean, variance = tf.nn.moments(y, [1, 2, 4], keepdims=True)
    y = tf.reshape((y - mean) * tf.math.rsqrt(variance + 1e-4), tf.stack([batch, height, width, depth]))
    y = tf.ensure_shape(y, [None, height, width, depth])
    return y * var(f"{name}/gain", [depth], 0.1, 1) + var(f"{name}/shift", [depth], 0.1)


def group_norm_net(var, x, labels):
    """Kernels standardised, groups normalised, ConvNeXt's order; global norms."""
    h = x
    for i, width in enumerate((6, 8)):
        kernel = var(f"c{i}/kernel", [3, 3, h.shape[-1], width], 0.3)
        mean, variance = tf.nn.moments(kernel, [0, 1, 2], keepdims=True)
        h = tf.nn.conv2d(h, (kernel - mean) / tf.sqrt(variance + 1e-3), 2 if i else 1, [[0, 0], [1, 1], [1, 1], [0, 0]])
        h = tf.nn.gelu(group_norm(var, f"c{i}/norm", h))
        h = h + tf.nn.selu(depthwise(var, f"c{i}/depth", h, 1))
    h = tf.concat([tf.reduce_mean(h, [1, 2]), tf.reduce_max(h, [1, 2]), tf.reduce_logsumexp(h, [1, 2])], -1)
    return sparse_loss(labels, dense(var, "out", h, 5))


def detector(var, x):
    """Boxes from anchors, the best kept, and pieces of the features cut out."""
    h = tf.nn.relu(conv(var, "one", x, 8, stride=2))
    h = tf.nn.relu(conv(var, "two", h, 8, stride=2))
    batch, size = tf.shape(x)[0], h.shape[1]
    where = tf.reshape(conv(var, "boxes", h, 8, 1), [-1, size * size * 2, 4])
    score = tf.sigmoid(tf.reshape(conv(var, "scores", h, 2, 1), [-1, size * size * 2]))
    centres = (tf.cast(tf.range(size), tf.float32) + 0.5) / size
    cy, cx = tf.meshgrid(centres, centres, indexing="ij")
    anchors = tf.reshape(tf.stack([tf.stack([cy, cx], -1)] * 2, 2), [1, -1, 2])
    middle = anchors + where[..., :2] * 0.1
    half = tf.constant([0.2, 0.3]) * tf.exp(where[..., 2:] * 0.2) / 2
    boxes = tf.clip_by_value(tf.concat([middle - half, middle + half], -1), 0.0, 1.0)
    best = [tf.image.non_max_suppression(boxes[i], score[i], 4, 0.3, 0.1) for i in range(2)]
    pad = [tf.concat([b, tf.fill([4 - tf.size(b)], -1)], 0) for b in best]
    chosen = tf.gather(boxes[0], best[0])
    padded, valid = tf.image.non_max_suppression_padded(boxes, score, 5, 0.3, 0.1, pad_to_max_output_size=True)
    return {"kept": tf.stack(pad), "chosen": tf.reduce_sum(chosen, 0), "boxes": boxes, "padded": padded, "valid": valid, "n": batch}


def crops(var, x, boxes):
    which = tf.range(tf.shape(boxes)[0]) % tf.shape(x)[0]
    low = tf.minimum(boxes[:, :2], boxes[:, 2:])
    high = tf.maximum(boxes[:, :2], boxes[:, 2:]) + 0.1
    return {"crops": tf.image.crop_and_resize(x, tf.concat([low, high], -1), which, [3, 4])}


def augment(var, x, seed):
    """One image after the other, as input pipelines do."""

    def one(args):
        image, key = args
        image = tf.image.stateless_random_crop(image, [8, 8, 3], key)
        image = tf.image.stateless_random_flip_left_right(image, key + 1)
        image = tf.image.stateless_random_brightness(image, 0.2, key + 2)
        image = tf.image.stateless_random_contrast(image, 0.7, 1.3, key + 3)
        image = tf.image.stateless_random_saturation(image, 0.7, 1.3, key + 4)
        image = tf.image.stateless_random_hue(image, 0.1, key + 5)
        image = tf.clip_by_value(image, 0.0, 1.0)
        return tf.image.per_image_standardization(tf.image.rot90(image))

    x = tf.sigmoid(x)
    keys = seed[None] + tf.range(4)[:, None]
    y = tf.map_fn(one, (x, keys), fn_output_signature=tf.float32)
    y = tf.ensure_shape(y, [4, 8, 8, 3])
    small = tf.image.resize(y, [5, 6], "bilinear")
    near = tf.image.resize(y, [11, 6], "nearest")
    return brief({"y": y, "small": small, "near": near, "middle": tf.image.central_crop(y, 0.5),
            "grey": tf.image.rgb_to_grayscale(x), "yuv": tf.image.rgb_to_yuv(x), "box": tf.image.resize_with_crop_or_pad(x, 7, 14),
            "edges": tf.image.sobel_edges(x), "variation": tf.image.total_variation(x), "hsv": tf.image.rgb_to_hsv(x),
            "back": tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(x)), "adjusted": tf.image.adjust_gamma(tf.image.adjust_hue(x, 0.2), 0.8),
            "ssim": tf.image.ssim(x[:2], x[2:], 1.0, filter_size=5), "bytes": tf.image.convert_image_dtype(x, tf.uint8)})


def gan(var, x, z):
    """Both players' steps, each on its own variables."""

    def part(f):
        before = len(var.trained)
        y = f()
        return y, var.trained[before:]

    def generator():
        h = tf.nn.relu(tf.reshape(dense(var, "g/in", z, 3 * 3 * 6), [-1, 3, 3, 6]))
        h = tf.nn.conv2d_transpose(h, var("g/up", [4, 4, 4, 6], 0.2), [4, 6, 6, 4], [2, 2], "SAME")
        return tf.tanh(tf.nn.conv2d_transpose(tf.nn.relu(h), var("g/out", [4, 4, 3, 4], 0.2), [4, 12, 12, 3], 2, "SAME"))

    fake, ours = part(generator)
    theirs = [var("d/one", [4, 4, 3, 4], 0.2), var("d/two", [4, 4, 4, 6], 0.2), var("d/w", [54, 1], 0.2)]

    def critic(image):
        h = tf.nn.leaky_relu(tf.nn.conv2d(image, theirs[0], 2, "SAME"), 0.2)
        h = tf.nn.leaky_relu(tf.nn.conv2d(h, theirs[1], 2, "SAME"), 0.2)
        return tf.matmul(tf.reshape(h, [tf.shape(image)[0], 54]), theirs[2])

    real, false = critic(x), critic(fake)
    loss = tf.nn.sigmoid_cross_entropy_with_logits
    d_loss = tf.reduce_mean(loss(tf.ones_like(real), real)) + tf.reduce_mean(loss(tf.zeros_like(false), false))
    g_loss = tf.reduce_mean(loss(tf.ones_like(false), false))
    mix = 0.5 * (x + tf.stop_gradient(fake))
    slope = tf.gradients(critic(mix), mix)[0]
    penalty = tf.reduce_mean(tf.square(tf.sqrt(tf.reduce_sum(tf.square(slope), [1, 2, 3]) + 1e-6) - 1))
    steps = [(v, g, 0.02) for v, g in zip(theirs, tf.gradients(d_loss + penalty, theirs))]
    steps += [(v, g, 0.03) for v, g in zip(ours, tf.gradients(g_loss, ours))]
    with tf.control_dependencies([tf.identity(g) for _, g, _ in steps]):
        done = [v.assign_sub(r * g, read_value=False) for v, g, r in steps]
    with tf.control_dependencies(done):
        return {"losses": tf.stack([d_loss, g_loss, penalty]), "checksum": var.checksum()}


def vae(var, x):
    """Its noise is TensorFlow's, from an op with hidden state and given seeds."""
    flat = tf.reshape(tf.sigmoid(x), [4, -1])
    h = dense(var, "in", flat, 12, tf.nn.softplus)
    mean, log_var = tf.split(dense(var, "code", h, 8), 2, -1)
    noise = tf.random.normal(tf.shape(mean), seed=7)
    z = mean + tf.exp(0.5 * log_var) * noise
    logits = dense(var, "out", dense(var, "back", z, 12, tf.nn.elu), flat.shape[-1])
    ce = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=flat, logits=logits), -1)
    kl = -0.5 * tf.reduce_sum(1 + log_var - tf.square(mean) - tf.exp(log_var), -1)
    return tf.reduce_mean(ce + kl) / 100


def simclr(var, x, other):
    """Two views of each image must be nearer to each other than to the rest."""

    kernel = var("kernel", [3, 3, 3, 8], 0.2)
    w = var("w", [8, 6], 0.4)

    def embed(image):
        h = tf.nn.relu(tf.nn.conv2d(image, kernel, 2, "SAME"))
        return tf.math.l2_normalize(tf.matmul(tf.reduce_mean(h, [1, 2]), w), -1)

    a, b = embed(x), embed(other)
    both = tf.concat([a, b], 0)
    scores = tf.einsum("id,jd->ij", both, both) / 0.2
    n = tf.shape(a)[0]
    scores = tf.linalg.set_diag(scores, tf.fill([2 * n], -1e9))
    labels = tf.concat([tf.range(n) + n, tf.range(n)], 0)
    uniform = tf.math.log(tf.reduce_mean(tf.exp(-2.0 * tf.reduce_sum((a[:, None] - a[None]) ** 2, -1))))
    return sparse_loss(labels, scores) + 0.1 * uniform


def vision_transformer(var, x, labels):
    """Patches cut out, windows rolled, tokens mixed."""
    batch, width = tf.shape(x)[0], 8
    patches = tf.image.extract_patches(x, [1, 3, 3, 1], [1, 3, 3, 1], [1, 1, 1, 1], "VALID")
    h = tf.reshape(patches, [batch, 16, 27])
    h = tf.einsum("btf,fd->btd", h, var("embed", [27, width], 0.2)) + var("places", [16, width], 0.2)
    h = tf.concat([tf.tile(var("token", [1, 1, width], 0.3), [batch, 1, 1]), h], 1)
    for b in range(2):
        mean = tf.reduce_mean(h, -1, keepdims=True)
        n = (h - mean) * tf.math.rsqrt(tf.reduce_mean(tf.math.squared_difference(h, mean), -1, keepdims=True) + 1e-5)
        qkv = tf.einsum("btd,dchs->cbhts", n, var(f"b{b}/qkv", [width, 3, 2, 4], 0.3))
        q, k, v = tf.unstack(qkv)
        p = tf.nn.softmax(tf.einsum("bhts,bhus->bhtu", q, k) / 2.0)
        h = h + tf.einsum("bhtu,bhus,hsd->btd", p, v, var(f"b{b}/o", [2, 4, width], 0.3))
        rest = tf.reshape(tf.roll(tf.reshape(h[:, 1:], [batch, 4, 4, width]), [1, -1], [1, 2]), [batch, 16, width])
        h = tf.concat([h[:, :1], rest], 1)
        h = h + tf.matmul(tf.nn.gelu(tf.matmul(h, var(f"b{b}/up", [width, 16], 0.3)), True), var(f"b{b}/down", [16, width], 0.3))
    return sparse_loss(labels, dense(var, "out", h[:, 0], 5))


def quantized(var, x, labels):
    """Trained with fake quantisation of kernels by feature, of activations by learnt and by moving ranges."""
    kernel = var("kernel", [3, 3, 3, 6], 0.3)
    low, high = tf.reduce_min(kernel, [0, 1, 2]), tf.reduce_max(kernel, [0, 1, 2])
    kernel = tf.quantization.fake_quant_with_min_max_vars_per_channel(kernel, low, high, narrow_range=True)
    h = tf.nn.relu6(tf.nn.conv2d(x, kernel, 2, "SAME"))
    h = tf.quantization.fake_quant_with_min_max_args(h, 0.0, 6.0)
    low, high = var("low", [], 0.01, -3.0), var("high", [], 0.01, 3.0)
    h = tf.quantization.fake_quant_with_min_max_vars(conv(var, "two", h, 6), low, high)
    top = var("top", [], 0.01, 2.0, train=False)
    var.updates.append(lambda: top.assign(0.9 * top + 0.1 * tf.reduce_max(h)))
    w = var("w", [6, 5], 0.4)
    w = tf.quantization.quantize_and_dequantize_v2(w, -1.0, 1.0, range_given=True)
    return sparse_loss(labels, tf.matmul(tf.reduce_mean(h, [1, 2]), w))


def nerf(var, origins, directions):
    """Rays through a field; what is in front hides what is behind."""
    depths = tf.linspace(0.5, 2.0, 6)
    directions = tf.math.l2_normalize(directions, -1)
    points = origins[:, None] + directions[:, None] * depths[None, :, None]
    code = tf.concat([f(points * 2.0 ** i) for i in range(3) for f in (tf.sin, tf.cos)], -1)
    h = tf.nn.relu(tf.tensordot(code, var("one", [18, 12], 0.3), 1) + var("bias", [12], 0.1))
    out = tf.tensordot(h, var("two", [12, 4], 0.4), 1)
    density, colour = tf.nn.softplus(out[..., 0]), tf.sigmoid(out[..., 1:])
    gaps = tf.concat([depths[1:] - depths[:-1], [1.0]], 0)
    alpha = 1 - tf.exp(-density * gaps)
    weight = alpha * tf.math.cumprod(1 - alpha + 1e-7, -1, exclusive=True)
    image = tf.reduce_sum(weight[..., None] * colour, 1) + (1 - tf.reduce_sum(weight, 1))[:, None]
    return tf.reduce_mean((image - tf.sigmoid(origins)) ** 2) - 0.01 * tf.reduce_mean(tf.math.cumsum(weight, -1, reverse=True) * depths)


def super_resolution(var, x):
    h = tf.nn.relu(conv(var, "one", tf.pad(x, [[0, 0], [2, 2], [2, 2], [0, 0]], "SYMMETRIC"), 6))
    h = tf.nn.atrous_conv2d(h, var("wide", [3, 3, 6, 6], 0.2), 2, "SAME")
    h = tf.nn.depth_to_space(conv(var, "up", tf.nn.relu(h), 12), 2)
    big = tf.image.resize(x, [24, 24], "bicubic")
    area = tf.image.resize(h, [8, 8], "area")
    return brief({"area": area, "big": tf.reduce_sum(big, -1), "low": tf.nn.space_to_depth(h, 4)[..., 0], "psnr": tf.image.psnr(big, big * 0.9, 1.0)})
