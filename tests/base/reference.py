"""What the tests compare with: NumPy's and ml_dtypes' types under XLA's names, and exact rounding by integers."""

import ml_dtypes
import numpy as np

FLOATS = {
    "f4e2m1fn": ml_dtypes.float4_e2m1fn, "f6e2m3fn": ml_dtypes.float6_e2m3fn, "f6e3m2fn": ml_dtypes.float6_e3m2fn,
    "f8e3m4": ml_dtypes.float8_e3m4, "f8e4m3": ml_dtypes.float8_e4m3, "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f8e8m0fnu": ml_dtypes.float8_e8m0fnu, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16}
INTEGERS = {f"{k}{b}": (k == "s", b) for k in "su" for b in (1, 2, 4, 8, 16, 32, 64)}
STORAGE = {"pred": np.dtype(np.uint8), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
           "c64": np.dtype(np.complex64),
           "c128": np.dtype(np.complex128)}
STORAGE.update({n: np.dtype(t) for n, t in FLOATS.items()})
STORAGE.update({n: np.dtype(f"{'int' if s else 'uint'}{max(b, 8)}") for n, (s, b) in INTEGERS.items()})


def codes(name):
    """Every bit pattern of a narrow float type."""
    bits = {"f4": 4, "f6": 6, "f8": 8}.get(name[:2], 16)
    return np.arange(1 << bits, dtype=np.uint8 if bits <= 8 else np.uint16)


def as_bits(values):
    return values.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[values.dtype.itemsize])


class Rounder:
    """Nearest, ties to even, straight from f64, found among all values of the type; overflow as at the next step."""

    def __init__(self, name):
        self.name = name
        all_codes = codes(name)
        with np.errstate(all="ignore"):
            values = all_codes.view(np.dtype(FLOATS[name])).astype(np.float64)
        top = len(all_codes) // 2
        keep = np.isfinite(values[:top]) & (values[:top] >= 0)
        self.values, self.codes = values[:top][keep], all_codes[:top][keep]
        assert np.all(np.diff(self.values) > 0)
        step = self.values[-1] - self.values[-2]
        self.middles = np.append((self.values[:-1] + self.values[1:]) / 2, self.values[-1] + step / 2)
        with np.errstate(all="ignore"):
            huge = np.array([1e30 if name != "bf16" else np.inf], np.float32)
            self.beyond = int(as_bits(huge.astype(FLOATS[name]))[0])

    def magnitude(self, v):
        """Codes, without sign, of the non-negative finite v."""
        i = np.searchsorted(self.middles, v, side="left")
        tie = (i < len(self.middles)) & (self.middles[np.minimum(i, len(self.middles) - 1)] == v)
        candidates = np.append(self.codes, self.beyond)
        lower_odd = (i < len(self.codes)) & (np.append(self.codes, 0)[i] % 2 == 1)
        return candidates[i + (tie & lower_odd)]
