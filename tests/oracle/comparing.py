"""Where result arrays differ from what they must be, by the program's kind of comparison."""
import numpy as np

ULPS = 2  # of f32 and f64; narrower floats must be right
NO_NAN = ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")  # a NaN becomes a zero of any sign


def leaves(value):
    """The arrays of a result, depth first; tokens have none."""
    if isinstance(value, (tuple, list)):
        return [leaf for v in value for leaf in leaves(v)]
    return [] if value is None else [np.asarray(value)]


def is_float(a):
    return a.dtype.kind == "f" or a.dtype.name.startswith(("float", "bfloat"))


def steps(got, want):
    """How many representable values apart; NaNs count as equal, zeros of different signs as far apart."""
    ints = np.dtype(f"i{got.dtype.itemsize}")
    low = -(1 << (8 * got.dtype.itemsize - 1))
    a, b = (np.where(v < 0, low - v, v) for v in (x.view(ints).astype(np.int64) for x in (got, want)))
    # numbers of one sign are subtracted as integers: as floats, neighbours of f64 may seem hundreds of values apart
    distance = np.where((a < 0) == (b < 0), abs(a - b), abs(a.astype(np.float64) - b.astype(np.float64)))
    with np.errstate(all="ignore"):
        g, w = got.astype(np.float64), want.astype(np.float64)
    zeros = (g == 0) & (w == 0)
    signs = (np.signbit(g) != np.signbit(w)) & (got.dtype.name not in NO_NAN)
    apart = np.where(zeros, np.where(signs, 1e9, 0), distance)
    apart = np.where((g == w) & ~zeros, 0, apart)
    return np.where(np.isnan(g) | np.isnan(w), np.where(np.isnan(g) & np.isnan(w), 0, 1e9), apart)


def bad_exact(got, want):
    if got.dtype.kind == "c":
        return bad_exact(got.real.copy(), want.real.copy()) | bad_exact(got.imag.copy(), want.imag.copy())
    return steps(got, want) > 0 if is_float(got) else np.asarray(got != want, bool)


def bad_ulps(got, want):
    if got.dtype.kind == "c":
        return bad_complex(got, want)
    if not is_float(got):
        return bad_exact(got, want)
    return steps(got, want) > (ULPS if got.dtype.name in ("float32", "float64") else 0)


def bad_complex(got, want):
    """Off by more than a few units of the larger part. Where a part of the reference is NaN nothing is asked of that part:
    at poles and infinities XLA's formulas end in NaN, and xlac has the limit."""
    if got.dtype.kind != "c":
        return bad_ulps(got, want)
    g, w = got.astype(np.complex128), want.astype(np.complex128)
    with np.errstate(all="ignore"):
        near = abs(g - w) <= 4 * np.finfo(got.dtype).eps * abs(w)
    same = np.ones(got.shape, bool)
    for a, b in ((g.real, w.real), (g.imag, w.imag)):
        same &= (a == b) | np.isnan(b)
    return ~(near | same)


def bad_near(got, want, near):
    """Relative to the largest number; integers and narrow floats exactly, since their programs are. But XLA computes f16 in f16 on CPUs with
    AVX512-FP16: there what a step is rounded to may differ by a unit of the largest number."""
    if got.dtype.kind != "c" and (not is_float(got) or got.dtype.itemsize <= 2):
        bad = bad_exact(got, want)
        if got.dtype != np.float16:
            return bad
        with np.errstate(all="ignore"):
            g, w = got.astype(np.float64), want.astype(np.float64)
            scale = np.max(np.where(np.isfinite(w), abs(w), 0), initial=0) or 1
            return bad & ~(abs(g - w) <= np.finfo(np.float16).eps * scale)
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    g, w = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        scale = np.max(np.where(np.isfinite(w), abs(w), 0), initial=0) or 1
        off = abs(g - w) > near * scale
    return np.where(np.isfinite(g) & np.isfinite(w), off, ~((g == w) | (np.isnan(g) & np.isnan(w))))


def bad_lanes(program, got, want):
    """A mask of the elements that are not what they must be."""
    if program.kind == "near":
        return bad_near(got, want, program.near)
    return {"exact": bad_exact, "ulps": bad_ulps, "complex": bad_complex}[program.kind](got, want)
