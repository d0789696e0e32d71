"""Elementary functions to many digits, for the few elements on which XLA and NumPy both round worse than they should."""
import mpmath
import numpy as np

from comparing import bad_complex, steps

DIGITS = 120


def rsqrt(x):
    return 1 / mpmath.sqrt(x)


def cbrt(x):
    """The real root, also of negative numbers, whose principal one is complex."""
    return mpmath.cbrt(x) if x >= 0 else -mpmath.cbrt(-x)


def complex_atan2(y, x):
    return -1j * mpmath.log((x + 1j * y) / mpmath.sqrt(x * x + y * y))


REAL = {"exponential": mpmath.exp, "exponential-minus-one": mpmath.expm1, "log": mpmath.log, "log-plus-one": mpmath.log1p,
        "sine": mpmath.sin, "cosine": mpmath.cos, "tan": mpmath.tan, "sinh": mpmath.sinh, "cosh": mpmath.cosh,
        "tanh": mpmath.tanh, "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan, "asinh": mpmath.asinh,
        "acosh": mpmath.acosh, "atanh": mpmath.atanh, "sqrt": mpmath.sqrt, "rsqrt": rsqrt, "cbrt": cbrt, "erf": mpmath.erf,
        "logistic": lambda x: 1 / (1 + mpmath.exp(-x)), "power": mpmath.power, "divide": lambda x, y: x / y,
        "multiply": lambda x, y: x * y, "abs": abs, "sign": lambda x: x / abs(x)}
COMPLEX = {**REAL, "cbrt": mpmath.cbrt, "atan2": complex_atan2, "exponential-minus-one": lambda z: mpmath.exp(z) - 1, "log-plus-one": lambda z: mpmath.log(1 + z)}
ATAN2 = mpmath.atan2


def value(f, args, dtype):
    """f of the args, rounded once; None where it has no finite value."""
    with mpmath.workdps(DIGITS):
        try:
            wide = f(*(mpmath.mpc(complex(a)) if isinstance(a, (complex, np.complexfloating)) else mpmath.mpf(float(a)) for a in args))
        except (ValueError, ZeroDivisionError, OverflowError):
            return None
        if np.dtype(dtype).kind == "c":
            wide = mpmath.mpc(wide)
            return np.asarray(complex(wide.real, wide.imag)).astype(dtype)
        return None if isinstance(wide, mpmath.mpc) else np.asarray(float(wide)).astype(dtype)


def power_is_near(args, got, want):
    """x^y is e^(y log x): what the exponent is rounded by shows in the result, relative to its size."""
    exponent = abs(complex(args[1]) * np.log(complex(args[0])))
    return abs(complex(got) - complex(want)) <= 4 * np.finfo(got.dtype).eps * (1 + exponent) * abs(complex(want))


def still_wrong(program, got, wrong):
    """The mask without the elements that are within a unit of the last place of the true value."""
    if program.kind not in ("ulps", "complex") or got.dtype.kind not in "fc":
        return wrong
    complex_args = program.args[0][1].dtype.kind == "c"
    f = COMPLEX.get(program.opcode) if complex_args else ATAN2 if program.opcode == "atan2" else REAL.get(program.opcode)
    if f is None or any(a.size != got.size for _, a in program.args):
        return wrong
    wrong = wrong.copy()
    for i in np.flatnonzero(wrong):
        args = [a.reshape(-1)[i] for _, a in program.args]
        if not all(np.isfinite(a) for a in args):
            continue
        with np.errstate(all="ignore"):
            want = value(f, args, got.dtype)
            one = got.reshape(-1)[i:i + 1]
            near = want is not None and (bad_complex(one, want.reshape(1)) if got.dtype.kind == "c" else steps(one, want.reshape(1)) > 1)
            if want is not None and program.opcode == "power" and got.dtype.kind == "c":
                near = near and not power_is_near(args, one[0], want)
        wrong.reshape(-1)[i] = want is None or bool(near)
    return wrong
