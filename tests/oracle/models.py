"""What ops give, written out in Python and NumPy without regard to speed: the matrix's reference where XLA has none."""
import math

import numpy as np

import elementwise as ew


def float_facts(t):
    """exponent bits, mantissa bits, bias; whether the top exponent holds infinity; of every float type."""
    return {"f4e2m1fn": (2, 1, 1, False), "f6e2m3fn": (2, 3, 1, False), "f6e3m2fn": (3, 2, 3, False), "f8e3m4": (3, 4, 3, True),
            "f8e4m3": (4, 3, 7, True), "f8e4m3fn": (4, 3, 7, False), "f8e4m3fnuz": (4, 3, 8, False),
            "f8e4m3b11fnuz": (4, 3, 11, False), "f8e5m2": (5, 2, 15, True), "f8e5m2fnuz": (5, 2, 16, False),
            "f8e8m0fnu": (8, 0, 127, False), "f16": (5, 10, 15, True), "bf16": (8, 7, 127, True), "f32": (8, 23, 127, True),
            "f64": (11, 52, 1023, True)}[t]


def cast_bits(t):
    """The width XLA takes an element to have."""
    return 8 if t == "pred" or ew.bits_of(t) == 6 else ew.bits_of(t)


def bits_of(t, x):
    """The elements' bits, as Python numbers."""
    n = cast_bits(t)
    raw = np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(x.size, -1)
    return [int.from_bytes(row.tobytes(), "little") & ((1 << n) - 1) for row in raw]


def of_bits(t, bits, dims):
    n, dtype = cast_bits(t), np.dtype(ew.DTYPES[t])
    if n == 8 and t[0] in "pf" and ew.bits_of(t) < 8:
        bits = [b & ((1 << ew.bits_of(t)) - 1) for b in bits]
    if t[0] in "su" and n < 8:
        return np.array([ew.wrap(b, t) for b in bits], np.int64).astype(dtype).reshape(dims)
    raw = b"".join(int(b).to_bytes(dtype.itemsize, "little") for b in bits)
    return np.frombuffer(raw, dtype).reshape(dims).copy()


# --- comparisons ---

def total_order(t, x):
    """Numbers that order as bit patterns of sign and magnitude do."""
    n = ew.bits_of(t)
    if t == "f8e8m0fnu":
        return np.array(bits_of(t, x), object)
    half = 1 << (n - 1)
    return np.array([b if b < half else half - 1 - b for b in bits_of(t, x)], object)


def compare(t, direction, kind, a, b):
    f = {"EQ": np.equal, "NE": np.not_equal, "GE": np.greater_equal, "GT": np.greater, "LE": np.less_equal, "LT": np.less}[direction]
    if kind == "TOTALORDER":
        return f(total_order(t, a), total_order(t, b)).astype(bool).reshape(a.shape)
    if t[0] in "su":
        a, b = a.astype(object), b.astype(object)
    elif ew.is_float(t):
        a, b = a.astype(np.float64), b.astype(np.float64)
    return np.asarray(f(a, b)).astype(bool).reshape(a.shape)


def complex_of(a, b):
    out = np.empty(a.shape, np.complex64 if a.dtype == np.float32 else np.complex128)
    out.real, out.imag = a, b
    return out


def complex_atan2(y, x):
    """The definition, but for real arguments the real function, signs of zeros included."""
    with np.errstate(all="ignore"):
        full = ew.COMPLEX["atan2"](y.astype(np.complex128), x.astype(np.complex128))
        return np.where((y.imag == 0) & (x.imag == 0), np.arctan2(y.real.astype(np.float64), x.real.astype(np.float64)), full)


# --- conversions ---

def int_of(v, t):
    low, high = ew.int_range(t)
    return 0 if v != v else low if v <= low else high if v >= high else int(v)


def convert(t, to, x):
    """Float to integer truncates and saturates, NaN gives 0; integers wrap; complex gives its real part."""
    if t == to:
        return x
    with np.errstate(all="ignore"):
        if to == "pred":
            return np.asarray(x.astype(np.complex128 if t[0] == "c" else np.float64) != 0)
        if t[0] == "c" and to[0] != "c":
            t, x = ("f32" if t == "c64" else "f64"), x.real
        if to[0] in "su":
            of = (lambda v: int_of(float(v), to)) if ew.is_float(t) else (lambda v: ew.wrap(int(v), to))
            flat = np.array([of(v) for v in np.asarray(x).reshape(-1)], object)
            return flat.astype(np.int64 if to[0] == "s" else np.uint64).astype(ew.DTYPES[to]).reshape(x.shape)
        if ew.is_narrow(t):
            x = x.astype(np.float32)
        if ew.is_narrow(to):
            return round_narrow(to, x)
        return x.astype(ew.DTYPES[to])


def round_narrow(to, x):
    """To nearest even from exact values, once: ml_dtypes goes by way of f32 from the wider types."""
    wide = np.asarray(x)
    if wide.dtype == np.float64 or wide.dtype.kind in "iu" and wide.dtype.itemsize >= 4:
        return np.array([nearest(to, v) for v in wide.reshape(-1)], np.float32).reshape(wide.shape).astype(ew.DTYPES[to])
    return wide.astype(np.float32).astype(ew.DTYPES[to])


def nearest(to, v):
    """The f32 that has v's nearest value in type `to`, ties to even."""
    exponent_bits, mantissa, bias, _ = float_facts(to)
    v = float(v) if abs(v) < 2**53 or v != v or isinstance(v, np.floating) else int(v)
    if v == 0 or v != v or abs(v) == math.inf:
        return np.float32(v)
    e = (math.frexp(v)[1] - 1) if isinstance(v, float) else abs(v).bit_length() - 1
    low = 1 - bias if mantissa else -bias
    if e > 127:
        return np.float32(math.copysign(math.inf, v))
    step = max(e, low) - mantissa
    if mantissa == 0:
        return np.float32(v) if isinstance(v, int) else round_power(v)
    whole = round(math.ldexp(v, -step)) if isinstance(v, float) else round_ratio(v, step)
    out = math.ldexp(float(whole), step)
    return np.float32(math.copysign(out, v))


def round_power(v):
    """f64 to f32 without losing what decides a tie between powers of two: to odd."""
    f = np.float32(v)
    if float(f) == v:
        return f
    toward = np.nextafter(f, np.float32(0)) if abs(float(f)) > abs(v) else f
    bits = int(np.float32(toward).view(np.uint32))
    return np.uint32(bits | 1).view(np.float32)


def round_ratio(v, step):
    if step <= 0:
        return v << -step
    q, r = divmod(abs(v), 1 << step)
    q += r > (1 << (step - 1)) or (r == (1 << (step - 1)) and q & 1)
    return q if v > 0 else -q


def bitcast_convert(t, to, x, out):
    """Elements' bits one after another, lowest first."""
    n, m = cast_bits(t), cast_bits(to)
    whole = 0
    for i, b in enumerate(bits_of(t, x)):
        whole |= b << (i * n)
    count = int(np.prod(out, dtype=int))
    return of_bits(to, [whole >> (i * m) & ((1 << m) - 1) for i in range(count)], out)


def reduce_precision(t, x, e, m):
    """Rounds the mantissa to m bits, then what is out of an exponent of e bits becomes infinite or zero (no subnormals)."""
    wide = "f64" if t == "f64" else "f32"
    _, mantissa, bias, _ = float_facts(wide)
    high = (1 << (e - 1)) - 1
    out = []
    for v in x.astype(ew.DTYPES[wide]).reshape(-1):
        v = float(v)
        if v == 0 or v != v or abs(v) == math.inf:
            out.append(v)
            continue
        if m < mantissa:
            step = max(math.frexp(v)[1] - 1, 1 - bias) - m
            v = math.copysign(math.ldexp(float(round(math.ldexp(v, -step))), step), v)
        exponent = math.frexp(v)[1] - 1 if v else -10**6
        limits = e < (11 if wide == "f64" else 8)
        if limits and exponent > high or exponent > bias:
            v = math.copysign(math.inf, v)
        elif limits and exponent <= -high:
            v = math.copysign(0.0, v)
        out.append(v)
    wide_out = np.array(out, ew.DTYPES[wide]).reshape(x.shape)
    return convert(wide, t, wide_out)


def stochastic_convert(t, to, x, random, width):
    """To the neighbour farther from zero where random / 2^width is below the place between the two."""
    part = {"c64": "f32", "c128": "f64"}.get(to, to)
    out = [stochastic(part, float(v), int(r) / 2.0**width) for v, r in zip(x.astype(np.float64), random)]
    wide = np.array(out, np.float64)
    if to == "pred":
        return wide != 0
    return convert("f64", part, wide).astype(ew.DTYPES[to]).reshape(x.shape)


def stochastic(to, v, fraction):
    """A number that conversion to the type changes no more, unless it overflows it."""
    if v != v or abs(v) == math.inf or v == 0:
        return 0.0 if v != v and to[0] in "sup" else v
    a = abs(v)
    if to[0] in "sup":
        low = math.floor(a)
        return math.copysign(low + (fraction < a - low), v)
    _, mantissa, bias, _ = float_facts(to)
    step = max(math.frexp(a)[1] - 1, 1 - bias if mantissa else -bias) - mantissa
    low = math.ldexp(math.floor(math.ldexp(a, -step)), step)
    if to == "f8e8m0fnu" and low == 0:
        return v
    return math.copysign(low + (math.ldexp(1.0, step) if fraction < math.ldexp(a - low, -step) else 0), v)


# --- random numbers ---

def philox(key, counter):
    """Philox4x32-10: four words of a 64-bit key and a 128-bit counter."""
    c = [counter >> (32 * i) & 0xffffffff for i in range(4)]
    k = [key & 0xffffffff, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xffffffff, a >> 32 ^ c[3] ^ k[1], a & 0xffffffff]
        k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
    return c


def threefry(key, counter):
    """Threefry2x32-20: two words."""
    mask, k = 0xffffffff, [key & 0xffffffff, key >> 32]
    k.append(k[0] ^ k[1] ^ 0x1BD11BDA)
    x = [((counter & mask) + k[0]) & mask, ((counter >> 32) + k[1]) & mask]
    for group in range(5):
        for r in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x[0] = (x[0] + x[1]) & mask
            x[1] = (x[1] << r | x[1] >> (32 - r)) & mask ^ x[0]
        x = [(x[0] + k[(group + 1) % 3]) & mask, (x[1] + k[(group + 2) % 3] + group + 1) & mask]
    return x


def random_bits(t, algorithm, state, dims):
    """docs/rng.md, rng-bit-generator."""
    key, start, n, width = int(state[0]), int(state[1]), int(np.prod(dims, dtype=int)), ew.bits_of(t)
    if algorithm == "rng_three_fry":
        bits, used = threefry_bits(key, start, dims, width)
    else:
        per = 2 if width == 64 else 4
        counter, used = start | key << 64, -(-n // per)
        words = [w for i in range(used) for w in philox(key, counter + i & (1 << 128) - 1)]
        bits = [words[2 * i] | words[2 * i + 1] << 32 for i in range(n)] if width == 64 else words[:n]
    new = state.copy()
    new[1] = (start + used) % 2**64
    return [new, of_bits(t, [b & (1 << width) - 1 for b in bits], dims)]


def threefry_bits(key, start, dims, width):
    n = int(np.prod(dims, dtype=int))
    block = lambda i: threefry(key, (start + i) % 2**64)
    if width == 64:
        return [block(i)[0] | block(i)[1] << 32 for i in range(n)], n
    even = [d for d, size in enumerate(dims) if size % 2 == 0]
    pair = even[0] if even else int(np.argmax(dims)) if dims else 0
    size = dims[pair] if dims else 1
    inner = int(np.prod(dims[pair + 1:], dtype=int)) if dims else 1
    half, bits = -(-size // 2), []
    for i in range(n):
        below, along, above = i % inner, i // inner % size, i // inner // size
        bits.append(block((above * half + along // 2) * inner + below)[along % 2])
    return bits, n // max(size, 1) * half


def rng(t, kind, a, b, dims, seed=0):
    """docs/rng.md, rng."""
    counter, words, out = 0x7012395 + seed, [], []

    def word():
        nonlocal counter, words
        if not words:
            words = philox(seed, counter)
            counter += 1
        return words.pop(0)

    def both():
        low = word()
        return low | word() << 32
    unit = lambda: (both() >> 11) * 2.0**-53
    single = lambda v: np.asarray(convert("f64", t, np.asarray(v, np.float64)))
    for _ in range(int(np.prod(dims))):
        if kind == "rng_normal":
            u = 1 - unit()
            out.append(single(float(a) + float(b) * math.sqrt(-2 * math.log(u)) * math.cos(6.283185307179586 * unit())))
        elif t == "pred":
            out.append(np.asarray(bool(a) if a == b else bool(word() & 1)))
        elif ew.is_float(t):
            v = single(float(a) + (float(b) - float(a)) * unit())
            while v.astype(np.float64) >= float(b):
                v = single(float(a) + (float(b) - float(a)) * unit())
            out.append(v)
        else:
            out.append(np.asarray(int(a) + ((int(b) - int(a)) * both() >> 64)).astype(ew.DTYPES[t]))
    return np.array(out).reshape(dims)


# --- order ---

def sort(t, direction, x):
    wide = x.astype(np.float64) if ew.is_float(t) else x.astype(object)
    key = -wide if direction == "GT" else wide
    if t == "pred":
        key = (~x if direction == "GT" else x).astype(int)
    return np.take_along_axis(x, np.argsort(key, axis=1, kind="stable"), 1)


def topk(t, x, k, largest):
    """Ordered by total order, equal ones by place."""
    key = total_order(t, x).reshape(x.shape) if ew.is_float(t) else x.astype(object)
    key = np.array(-key if largest else key, object).astype(np.float64) if t not in ("s64", "u64", "f64") else (-key if largest else key)
    at = np.array([sorted(range(x.shape[1]), key=lambda i: (row[i], i))[:k] for row in key], np.int32)
    return [np.take_along_axis(x, at, 1), at]


# --- contractions ---

def widened(x):
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def named(dtype):
    return next(t for t, d in ew.DTYPES.items() if np.dtype(d) == np.dtype(dtype))


def dot(x, y, to):
    full = widened(x) @ widened(y)
    if full.dtype.kind == "c" and to[0] != "c":
        full = full.real
    return full.astype(ew.DTYPES[to]) if to[0] == "c" else convert("f64", to, full)


def ragged_dot(t, x, y, sizes):
    out, start = np.zeros((x.shape[0], y.shape[2]), np.complex128 if t[0] == "c" else np.float64), 0
    for g, n in enumerate(sizes):
        out[start:start + n] = widened(x)[start:start + n] @ widened(y)[g]
        start += n
    if t[0] == "c":
        return out.astype(x.dtype)
    if t[0] in "su":
        return np.array([ew.wrap(int(v), t) for v in out.reshape(-1)]).astype(x.dtype).reshape(out.shape)
    return out != 0 if t == "pred" else convert("f64", t, out)


def scaled_dot(x, y, p, q, to):
    a = x.astype(np.float64) * np.repeat(p.astype(np.float64), x.shape[1] // p.shape[1], 1)
    b = y.astype(np.float64) * np.repeat(q.astype(np.float64), y.shape[1] // q.shape[1], 1)
    return convert("f64", to, a @ b.T)


def fft(t, kind, x):
    f = {"FFT": np.fft.fft, "IFFT": np.fft.ifft, "RFFT": np.fft.rfft, "IRFFT": lambda v: np.fft.irfft(v, 8)}[kind]
    wide = t in ("f64", "c128")
    out = f(widened(x))
    return out.astype((np.complex128 if wide else np.complex64) if out.dtype.kind == "c" else (np.float64 if wide else np.float32))
