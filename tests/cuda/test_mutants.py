"""Faults put into the kernels that xlac prints and into its graphs, one at a time: each is found, by the driver or by the result. Every kind
of fault is put into every form of kernel; a share of the places runs here, all of them by `python tests/cuda/test_mutants.py`."""
import ctypes
import os
import re
import sys

import numpy as np
import pytest

import sweep
import xlac
from simulator import xlac_driver
from test_cuda_faults import PROGRAM as FAULTS
from test_cuda_graphs import CHAIN, arguments as graph_arguments

# Lines whose fault changes nothing, and why.
HARMLESS = [
    r"half \* \d+ > 32\) __syncthreads", # of a tree within a warp the one is never reached; of one across warps the other is the last thing
    r"lane < half && lane \+ half < busy",  # what lies behind is the sum of nothing
    r"for \(int j = 0; j < 32; j \+= 8\)",  # rows of a tile behind its last one are behind the array, too
    r"if \(n >= \d+\) return",  # by how much the threads' packs go beyond it
    r"const bool there = ",  # as many blocks as results
    r"far < 32;", r"for \(idx chunk = begin", r"lane < \d+ \? lane : ",  # scans: what lies behind the last part or element goes nowhere
    r"at % 1 == 0 && at / 1 <", r"uint8_t f\d+ = ", r"bool before = b < a",  # values, of which no two are equal
    r"from < 20; from \+= 16", r"from < terms; from \+=",  # terms behind the last are zeros
    # Registers: here they lie on the stack, where one too many is not seen.
    r"for \(int j = 0; j < [2-4]; j\+\+\)",
    r"for \(int \w = 0; \w < (ROWS / 64|P::EACH|V|P|N|STEPS|[248]|KEYS / 8|DV? / 8); ", r"for \(int \w = 0; \w < KEYS / 8; j \+= ",
    r"from < all; from \+= KEYS|^if \(from >= all\)",  # keys behind the last have no weight
    r"column >= 1\) return",  # sums of rows are one column
    # The pieces of a stage are a multiple of 128 threads, so that none breaks off. With 40 terms instead of 24 they are not, and the same fault
    # writes out of bounds in the kernels of gradients.
    r"P::PIECES % 128 && n >= P::PIECES",
    r"P::PIECES % 128 == 0",  # what is one too many of a stage's rows or terms is multiplied by 0, or has no weight
    r"j < P::V|stage\)\[\(r \+ j\) \* W",  # registers again, and what lies along rows, which no form here has
    r"if constexpr \(KIND < [24]\)|STEPS = KIND < 4",  # which kind there is: none has that number
    r"hidden\(top, |some \|= |far < all; far \+= KEYS|const float score = row",  # what a mask hides: no form here has a mask
]
# Lines of tensor.cuh that are not compiled for a form.
MMA = [r"^(low|high)\[n\] = |void tensor_|tensor_matrices|tensor_turned|right\[|left\[|tensor_mma<|attention_pair"]
F16 = [r"\(const float \*\)(keys|values)|weights\[j\]\[n % 2\]|\*q\(row, d\)|d < depth; d\+\+|KIND == 2|^(low|high)\[n\] = values"]
# A ballot brings a warp together here; it promises no order of memory, so the machine needs more. Of what moves after a rank only the second needs
# its first barrier.
SORT = [r"^__sync(warp|threads)\(\);", r"E = T < 256", r"far < 32; far \*= 2",
        r"w < warp; w\+\+\) all \+= sums\[w\]", r"^if \(t \* E < 256\)",  # lines of 50 are one warp's, whose threads have all digits
        r"all = shared\[chunk % 2\]"]  # a line is one chunk, so that either half will do
# A unit's products go along their rows, or along neither, and the other line is not compiled; terms behind the last are multiplied by zeros.
TAKE = [r"^if \(\(rows % ROWS == 0 \|\| r < rows\) && ", r"^if \(r < rows && t \+ j < terms\)"]
# Maxima and sums of rows, which are results of gradients' forms alone.
ROWS = [r"rows\) rows_of\("]
# Kernels that sum up rows have no second product, and are units of their own.
SUMS = [r"attention_pair<KIND>\(weights", r"^tensor_turned\(", r"^tensor_mma<KIND>\(sums\[i"]
# Rows that one warp has: what rows of several would do is not compiled.
WARPS = [r"^__syncthreads\(\);", r"w < LANES / 32"]
BLOCKS = [r"^if \(j < 2 \|\| step < 1400\)"]  # of the maximum: a 0 behind the row is less
OTHERS = {"orders": SORT, "tensor": TAKE, "softmax of warps": WARPS, "softmax of blocks": BLOCKS, "norm": WARPS, "attention f16": F16 + ROWS,
          "gradients f16": [*F16, *SUMS, r"V_ALONG < 3"],  # the last: of those whose values are no keys
          "attention f32": [*MMA, *ROWS, r"^const float low = row < rows"]}  # the last: of 16 rows the upper 8, which begin in the middle of no block
KINDS = {"memory": 1, "shared": 2, "barrier": 3, "bound": 4}
HEAD = """HloModule m
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
most { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] maximum(a, b) }
ENTRY e {
 none = f32[] constant(0)
 least = f32[] constant(-inf)
"""
MOVES = """ x = f32[30,20] parameter(0)
 y = f32[20,30] transpose(x), dimensions={1,0}
 z = f32[20,30] multiply(y, y)
 rows = f32[20] reduce(z, none), dimensions={1}, to_apply=sum
 columns = f32[30] reduce(z, none), dimensions={0}, to_apply=most
 i = s32[20] iota(), iota_dimension=0
 half = f32[20] convert(i)
 both = f32[20] add(half, rows)
 c = bf16[20] convert(both)
 s = f32[5,30] slice(z), slice={[2:7], [0:30]}
 r = f32[5,30] reverse(s), dimensions={1}
 wide = f32[7,30] pad(r, none), padding=1_1x0_0
 ROOT t = (f32[20], f32[30], bf16[20], f32[7,30]) tuple(both, columns, c, wide)
}
"""
# Neighbours that are one access of 16 bytes, or two.
PACKS = """ x = f32[36,20] parameter(0)
 w = f32[20] slice(q), slice={[4:24]}
 q = f32[40] parameter(1)
 b = f32[36,20] broadcast(w), dimensions={1}
 y = f32[36,20] add(x, b)
 h = bf16[36,20] convert(y)
 ROOT t = (f32[36,20], bf16[36,20]) tuple(y, h)
}
""".replace(" w = f32[20] slice(q), slice={[4:24]}\n q = f32[40] parameter(1)\n", " q = f32[40] parameter(1)\n w = f32[20] slice(q), slice={[4:24]}\n")
# Threads of a warp and of a block that share a result; results beside each other; pieces that a second round combines.
SHARED = """ x = f32[9,140] parameter(0)
 y = f32[3,4100] parameter(1)
 z = f32[300,40] parameter(2)
 a = f32[9] reduce(x, none), dimensions={1}, to_apply=sum
 b = f32[3] reduce(y, none), dimensions={1}, to_apply=sum
 zz = f32[300,40] negate(z)
 c = f32[40] reduce(zz, least), dimensions={0}, to_apply=most
 d = f32[] reduce(y, none), dimensions={0,1}, to_apply=sum
 ROOT t = (f32[9], f32[3], f32[40], f32[]) tuple(a, b, c, d)
}
"""
TILES = """ x = f32[3,40,33] parameter(0)
 y = f32[3,33,40] transpose(x), dimensions={0,2,1}
 z = f32[3,33,40] negate(y)
 ROOT t = (f32[3,33,40]) tuple(z)
}
"""
# Rows that threads of a warp have, and of a block; far apart, so that another row's largest number shows.
SOFTMAX = """ p = f32[ROWS,COLUMNS] parameter(0)
 i = f32[ROWS,COLUMNS] iota(), iota_dimension=0
 far = f32[] constant(50)
 ff = f32[ROWS,COLUMNS] broadcast(far), dimensions={}
 w = f32[ROWS,COLUMNS] multiply(i, ff)
 x = f32[ROWS,COLUMNS] add(p, w)
 m = f32[ROWS] reduce(x, least), dimensions={1}, to_apply=most
 mm = f32[ROWS,COLUMNS] broadcast(m), dimensions={0}
 d = f32[ROWS,COLUMNS] subtract(x, mm)
 e = f32[ROWS,COLUMNS] exponential(d)
 s = f32[ROWS] reduce(e, none), dimensions={1}, to_apply=sum
 ss = f32[ROWS,COLUMNS] broadcast(s), dimensions={0}
 ROOT r = f32[ROWS,COLUMNS] divide(e, ss)
}
"""
NORM = """ x = f32[1100,48] parameter(0)
 g = f32[48] parameter(1)
 s = f32[1100] reduce(x, none), dimensions={1}, to_apply=sum
 n = f32[] constant(0.0208333)
 nn = f32[1100] broadcast(n), dimensions={}
 mean = f32[1100] multiply(s, nn)
 mm = f32[1100,48] broadcast(mean), dimensions={0}
 d = f32[1100,48] subtract(x, mm)
 v = f32[1100,48] multiply(d, d)
 vs = f32[1100] reduce(v, none), dimensions={1}, to_apply=sum
 vn = f32[1100] multiply(vs, nn)
 r = f32[1100] rsqrt(vn)
 rr = f32[1100,48] broadcast(r), dimensions={0}
 o = f32[1100,48] multiply(d, rr)
 gg = f32[1100,48] broadcast(g), dimensions={1}
 ROOT t = f32[1100,48] multiply(o, gg)
}
"""
ORDERS = """ x = f32[3,2100] parameter(0)
 y = s32[5,50] parameter(1)
 a = f32[20,70] parameter(2)
 b = f32[20,66] parameter(3)
 begin = f32[] constant(0.5)
 c = f32[3,2100] reduce-window(x, begin), window={size=1x2100 pad=0_0x2099_0}, to_apply=sum
 s = s32[5,50] sort(y), dimensions={1}, to_apply=less
 p = f32[70,66] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
 ROOT t = (f32[3,2100], s32[5,50], f32[70,66]) tuple(c, s, p)
}
"""
# On tensor cores: pieces of 16 bytes along the terms of one operand and across those of the other, and single elements.
TENSOR = """ a = f16[72,40] parameter(0)
 b = f16[40,72] parameter(1)
 c = f16[9,17] parameter(2)
 d = f16[17,11] parameter(3)
 e = f32[72] parameter(4)
 p = f32[72,72] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 ee = f32[72,72] broadcast(e), dimensions={0}
 pp = f32[72,72] multiply(p, ee)
 q = f32[9,11] dot(c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 ROOT t = (f32[72,72], f32[9,11]) tuple(pp, q)
}
"""
# Queries and keys that fill no block; scores far enough apart that another key's shows.
ATTENTION = """ q = T[2,70,24] parameter(0)
 k = T[2,100,24] parameter(1)
 v = T[2,100,20] parameter(2)
 bias = f32[2,100] parameter(3)
 p = f32[2,70,100] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
 far = f32[] constant(8)
 ff = f32[2,70,100] broadcast(far), dimensions={}
 pp = f32[2,70,100] multiply(p, ff)
 bb = f32[2,70,100] broadcast(bias), dimensions={0,2}
 x = f32[2,70,100] add(pp, bb)
 m = f32[2,70] reduce(x, least), dimensions={2}, to_apply=most
 mm = f32[2,70,100] broadcast(m), dimensions={0,1}
 d = f32[2,70,100] subtract(x, mm)
 e = f32[2,70,100] exponential(d)
 s = f32[2,70] reduce(e, none), dimensions={2}, to_apply=sum
 ss = f32[2,70,100] broadcast(s), dimensions={0,1}
 w = f32[2,70,100] divide(e, ss)
 wt = T[2,70,100] convert(w)
 ROOT o = T[2,70,20] dot(wt, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
}
"""
# The maxima and sums of its rows are read by others; sums of rows and products of two products' elements, and of their transposes.
GRADIENTS = ATTENTION.replace("ROOT o", "o").replace("T[", "f16[")[:-2] + """ do = f16[2,70,20] parameter(4)
 dwt = f16[2,70,100] dot(do, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
 dw = f32[2,70,100] convert(dwt)
 wd = f32[2,70,100] multiply(dw, w)
 delta = f32[2,70] reduce(wd, none), dimensions={2}, to_apply=sum
 db = f32[2,70,100] broadcast(delta), dimensions={0,1}
 by = f32[2,70,100] subtract(dw, db)
 ds = f32[2,70,100] multiply(by, w)
 dp = f16[2,70,100] convert(ds)
 dv = f16[2,100,20] dot(wt, do), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}
 dk = f16[2,100,24] dot(dp, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}
 dq = f16[2,70,24] dot(dp, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
 ROOT t = (f16[2,70,20], f16[2,70,24], f16[2,100,24], f16[2,100,20]) tuple(o, dq, dk, dv)
}
"""
LESS = """less { a = s32[] parameter(0)
 b = s32[] parameter(1)
 ROOT c = pred[] compare(a, b), direction=LT }
ENTRY"""
FORMS = {"moves": MOVES, "packs": PACKS, "shared": SHARED, "tiles": TILES, "softmax of warps": SOFTMAX.replace("ROWS", "520").replace("COLUMNS", "96"),
         "softmax of blocks": SOFTMAX.replace("ROWS", "40").replace("COLUMNS", "1400"), "norm": NORM, "orders": ORDERS, "tensor": TENSOR,
         "attention f16": ATTENTION.replace("T[", "f16["), "attention f32": ATTENTION.replace("T[", "f32["), "gradients f16": GRADIENTS}


def program(form):
    return HEAD.replace("ENTRY", LESS) + FORMS[form]


def arguments(exe):
    """Numbers that all differ, so that a wrong place shows."""
    rng, out = np.random.default_rng(1), []
    for x in exe.inputs:
        numbers = rng.permutation(int(np.prod(x.shape))).reshape(x.shape)
        kind = {"f16": np.float16, "f32": np.float32}.get(x.dtype)
        out.append((1 + numbers / numbers.size).astype(kind) if kind else numbers.astype(np.int32))
    return out


class Mutants:
    """A form's program, compiled with faults."""

    def __init__(self, cuda, form):
        self.cuda, self.text, self.form = cuda, program(form), form
        exe = xlac.compile(self.text)
        self.args = arguments(exe)
        self.want = sweep.leaves(xlac.interpret(self.text, *self.args))

    def why(self, kind, nth, calls=1):
        """What is found with the nth place wrong; None: nothing."""
        self.cuda.clear()
        self.cuda.library.cudasim_mutate(ctypes.c_uint32(kind), ctypes.c_uint32(nth))
        try:
            exe = xlac.compile(self.text, device="cuda")
            found = [sweep.differs(self.text, sweep.leaves(exe(*self.args)), self.want) for _ in range(calls)]
        except xlac.Error as e:
            found = [str(e)]
        return next(iter(self.cuda.reports() + [f for f in found if f]), None)

    def places(self, kind):
        assert self.why(kind, 0) is None
        return self.cuda.library.cudasim_mutate(ctypes.c_uint32(0), ctypes.c_uint32(0))

    def missed(self, kind, share):
        """How many places were tried, and those whose fault nothing found."""
        tried = range(1, self.places(kind) + 1)[::share]
        return len(tried), [f"{i}: {self.line()}" for i in tried if self.why(kind, i) is None and not self.harmless()]

    def harmless(self):
        return any(re.search(line, self.line()) for line in HARMLESS + OTHERS.get(self.form, []))

    def line(self):
        """Of the kernel, in which the last fault was put."""
        self.cuda.library.cudasim_mutated.restype = ctypes.c_char_p
        return self.cuda.library.cudasim_mutated().decode().strip()


def loses_edges(cuda, text, args, nth):
    """What is found where the nth node of a graph is behind no other; None: nothing. The second call is a graph."""
    cuda.clear()
    cuda.library.cudasim_lose_edge(ctypes.c_uint32(nth))
    exe = xlac.compile(text, device="cuda")
    try:
        for _ in range(2):
            exe(*args)
    except xlac.Error as e:
        return str(e)
    return next(iter(cuda.reports()), None)


@pytest.fixture(scope="module")
def cuda():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLAC_CUBLASLT", "0")  # products are kernels
        driver = xlac_driver()
        yield driver


@pytest.fixture(autouse=True)
def no_more(cuda):
    yield
    cuda.library.cudasim_mutate(ctypes.c_uint32(0), ctypes.c_uint32(0))
    cuda.library.cudasim_lose_edge(ctypes.c_uint32(0))
    cuda.fail(None)
    cuda.clear()


@pytest.mark.parametrize("form", FORMS)
def test_a_share_of_the_faults_in_each_form_is_found(cuda, form):
    mutants = Mutants(cuda, form)
    tried = {kind: mutants.missed(number, 17) for kind, number in KINDS.items()}
    assert sum(n for n, _ in tried.values()) >= 2
    assert [missed for _, missed in tried.values() if missed] == []


def test_an_access_that_is_out_of_bounds_is_called_so(cuda):
    mutants = Mutants(cuda, "moves")
    assert any("out of bounds" in (mutants.why(KINDS["memory"], i) or "") for i in range(1, 4))


@pytest.mark.parametrize("library", ["0", None])
def test_each_edge_that_a_graph_lacks_is_a_race(cuda, monkeypatch, library):
    """Copies, kernels, and products of a library's, which are graphs within."""
    if library is None:
        monkeypatch.delenv("XLAC_CUBLASLT")
    chain = CHAIN.replace("32,16", "32,64").replace("16,16", "64,64")
    for text, args in ((FAULTS, [np.linspace(0.5, 1.5, 16, dtype=np.float32)]), (chain, [np.ones((32, 64), np.float32), np.ones((64, 64), np.float32)])):
        assert loses_edges(cuda, text, args, 0) is None
        n = cuda.library.cudasim_lose_edge(ctypes.c_uint32(0))
        found = [loses_edges(cuda, text, args, i) for i in range(1, n + 1)]
        assert n >= 3 and all("race" in (f or "") for f in found), found


def test_a_wait_that_is_left_out_is_found_where_no_other_covers_it(cuda, monkeypatch):
    """A Buffer is written by a stream other than that which makes its memory: the host's wait is all that orders the two."""
    monkeypatch.delenv("XLAC_CUBLASLT")
    args = graph_arguments(0)
    want = np.asarray(xlac.compile(CHAIN)(*args))

    def calls():
        exe = xlac.compile(CHAIN, device="cuda", results="buffer")
        for _ in range(3):
            got = exe(*(xlac.asarray(a, device="cuda:0") for a in args))
            np.testing.assert_allclose(np.asarray(got), want, rtol=2e-4, atol=2e-4)

    before = cuda.count("cuStreamSynchronize")
    calls()
    found = []
    for i in range(1, cuda.count("cuStreamSynchronize") - before + 1):
        cuda.fail(f"cuStreamSynchronize:{i}:-1")
        try:
            calls()
        except xlac.Error as e:
            found.append(str(e))
        cuda.fail(None)
        assert all("nothing orders them" in text for text in cuda.reports()), cuda.reports()
        cuda.clear()
    assert len(found) >= 3 and all("nothing orders them" in text for text in found), found


def main():
    os.environ["XLAC_CUBLASLT"] = "0"
    driver, missed = xlac_driver(), 0
    for form in FORMS:
        mutants = Mutants(driver, form)
        for kind, number in KINDS.items():
            tried, bad = mutants.missed(number, 1)
            missed += len(bad)
            print(f"{form}, {kind}: {tried} faults, {len(bad)} not found", *bad, sep="\n  ", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
