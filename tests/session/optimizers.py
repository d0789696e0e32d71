"""Optimizers for make_goldens.py, on TensorFlow's own ops: each a function (variables, gradients) -> updates."""
import tensorflow as tf

raw = tf.raw_ops
# Adam's. The gradient of the keys' bias is 0 but for rounding; with less than this Adam would make steps of the noise.
EPSILON = 1e-4


def dense(gradient):
    return tf.convert_to_tensor(gradient)


def each(update, slots):
    """update(v, slots, gradient), with a slot variable for each (name, initial value)."""

    def apply(variables, gradients):
        out = []
        for v, g in zip(list(variables.trained), gradients):
            name = v.name.split(":")[0]
            own = [variables.constant(f"{name}/{slot}", v.shape, start).handle for slot, start in slots]
            out.append(update(v.handle, own, g))
        return out

    return apply


def sgd(v, slots, g):
    if isinstance(g, tf.IndexedSlices):
        return raw.ResourceScatterSub(resource=v, indices=g.indices, updates=g.values * 0.1)
    return raw.ResourceApplyGradientDescent(var=v, alpha=0.1, delta=dense(g))


def momentum(nesterov, rate=0.02):
    return lambda v, s, g: raw.ResourceApplyMomentum(var=v, accum=s[0], lr=rate, grad=dense(g), momentum=0.9,
                                                     use_nesterov=nesterov)


def adam(variables, gradients):
    """With the powers of the betas as variables, which are multiplied after all was applied."""
    b1, b2 = variables.constant("beta1_power", [], 0.9), variables.constant("beta2_power", [], 0.999)
    r1, r2 = b1.read_value(), b2.read_value()

    def one(v, s, g):
        return raw.ResourceApplyAdam(var=v, m=s[0], v=s[1], beta1_power=r1, beta2_power=r2, lr=0.01, beta1=0.9,
                                     beta2=0.999, epsilon=EPSILON, grad=dense(g))

    done = each(one, [("m", 0.0), ("v", 0.0)])(variables, gradients)
    with tf.control_dependencies([d for d in done if d is not None]):
        return done + [b1.assign(r1 * 0.9, read_value=False), b2.assign(r2 * 0.999, read_value=False)]


def keras_adam(variables, gradients):
    """As Keras writes it: elementwise ops, and a step counter."""
    step = variables.constant("iteration", [], 0.0)
    t = step.read_value() + 1.0
    rate = 0.01 * tf.sqrt(1.0 - tf.pow(0.999, t)) / (1.0 - tf.pow(0.9, t))

    done = []
    for v, g in zip(list(variables.trained), gradients):
        g = dense(g)
        m, n = [variables.constant(f"{v.name.split(':')[0]}/{s}", v.shape, 0.0) for s in "mv"]
        mean = m.read_value() + (g - m) * (1.0 - 0.9)
        var = n.read_value() + (tf.square(g) - n) * (1.0 - 0.999)
        done += [m.assign(mean, read_value=False), n.assign(var, read_value=False),
                 v.assign_sub(mean * rate / (tf.sqrt(var) + EPSILON), read_value=False)]
    with tf.control_dependencies([rate]):  # in one graph nothing else would say that the step is read first
        return done + [step.assign_add(1.0, read_value=False)]


ALL = {
    "sgd": each(sgd, []),
    "momentum": each(momentum(False), [("momentum", 0.0)]),
    "slow_momentum": each(momentum(False, 0.003), [("momentum", 0.0)]),
    "nesterov": each(momentum(True), [("momentum", 0.0)]),
    "adam": adam,
    "keras_adam": keras_adam,
    "adagrad": each(lambda v, s, g: raw.ResourceApplyAdagrad(var=v, accum=s[0], lr=0.1, grad=dense(g)), [("accum", 0.1)]),
    "rmsprop": each(lambda v, s, g: raw.ResourceApplyRMSProp(var=v, ms=s[0], mom=s[1], lr=0.01, rho=0.9, momentum=0.5,
                                                             epsilon=1e-5, grad=dense(g)), [("ms", 1.0), ("mom", 0.0)]),
    "centered": each(lambda v, s, g: raw.ResourceApplyCenteredRMSProp(var=v, mg=s[0], ms=s[1], mom=s[2], lr=0.01, rho=0.9,
                                                                      momentum=0.5, epsilon=1e-5, grad=dense(g)),
                     [("mg", 0.0), ("ms", 1.0), ("mom", 0.0)]),
    "ftrl": each(lambda v, s, g: raw.ResourceApplyFtrl(var=v, accum=s[0], linear=s[1], grad=dense(g), lr=0.1, l1=0.001,
                                                       l2=0.001, lr_power=-0.5), [("accum", 0.1), ("linear", 0.0)]),
}
