"""Products on tensor cores: xlac's own kernels, where there is no cuBLASLt or it has no such product. The driver that simulates gives each lane
the elements that the PTX ISA's tables say (tests/cuda/driver/ptx.c)."""
import ctypes
import os
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import gpu
import simulator
import test_cuda_products as products
import xlac

TYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "s8": np.int8, "s32": np.int32}
CASES = products.CASES + [  # terms and rows that fill no tile, none of them neighbours; several of each
    ((9, 21), (21, 11), "", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ((3, 66, 40), (3, 40, 130), "lhs_batch_dims={0}, rhs_batch_dims={0}, ", "lhs_contracting_dims={2}, rhs_contracting_dims={1}"),
    ((6, 7, 8, 9), (7, 9, 40), "", "lhs_contracting_dims={1,3}, rhs_contracting_dims={0,1}"),
    ((16, 12, 64), (24, 64, 16), "", "lhs_contracting_dims={0,2}, rhs_contracting_dims={2,1}"),
]


@pytest.fixture(autouse=True)
def device(monkeypatch):
    gpu.use()
    monkeypatch.setenv("XLAC_CUBLASLT", "0")


def values(dims, t, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(-128, 128, dims).astype(np.int8) if t == "s8" else (rng.integers(-16, 17, dims) / 8).astype(TYPES[t])


def check(cases, t, result=None, **options):
    """How many of the products are on tensor cores. The numbers and their sums are exact in f32."""
    module = products.program(cases, t, result)
    exe = xlac.compile(module, device="cuda", **options)
    args = [values(dims, t, i + j) for i, (a, b, *_) in enumerate(cases) for j, dims in enumerate((a, b))]
    for got, want in zip(exe(*args), xlac.interpret(module, *args)):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    return exe.explain("fusion").count("on tensor cores")


@pytest.mark.parametrize("t, result", [("f16", None), ("bf16", "f32"), ("s8", "s32")])
def test_products(t, result):
    assert check(CASES, t, result) == len(CASES) - 3  # vectors, and one term


def test_f32_is_rounded_to_tf32_where_the_program_lets_it_be():
    cases = CASES[-4:]
    assert check(cases, "f32") == 0
    assert check(cases, "f32", numerics="fast") == 4
    for words, fast, n in (("operand_precision={highest,highest}", True, 0), ("operand_precision={default,default}", True, 1),
                           ("algorithm=dot_f32_f32_f32", True, 0), ("algorithm=dot_tf32_tf32_f32", False, 1)):
        a, b, batch, contracting = cases[0]
        assert check([(a, b, batch, f"{contracting}, {words}")], "f32", numerics="fast" if fast else "strict") == n


def test_more_tiles_than_keep_a_gpu_busy_are_large():
    case = ((8, 200, 24), (8, 24, 1025), "lhs_batch_dims={0}, rhs_batch_dims={0}, ", "lhs_contracting_dims={2}, rhs_contracting_dims={1}")
    module = products.program([case], "bf16")
    assert "tile of 128 by 128 results: 144 blocks" in xlac.compile(module, device="cuda").explain("fusion")
    assert check([case], "bf16") == 1


def test_numbers_that_are_none():
    """inf, NaN, -0 and the smallest of f16 go through; a sum beyond f16 is inf."""
    module = products.program([((16, 16), (16, 16), "", "lhs_contracting_dims={1}, rhs_contracting_dims={0}")], "f16")
    x, y = np.zeros((16, 16), np.float16), np.eye(16, dtype=np.float16)
    x[:8, 0] = [np.inf, -np.inf, np.nan, -0.0, 6e-8, 65504, -65504, 1]
    x[8] = 65504
    y[:, 1] = 2
    with np.errstate(all="ignore"):
        want = xlac.interpret(module, x, y)[0]
    np.testing.assert_array_equal(np.asarray(xlac.compile(module, device="cuda")(x, y)[0]), np.asarray(want))


def test_an_older_gpu_has_none():
    """In a process of its own, since the capability is the driver's."""
    code = ("import xlac, test_cuda_products as p\nm = p.program(p.CASES[:1], 'f16')\n"
            "print('on tensor cores' in xlac.compile(m, device='cuda').explain('fusion'))")
    if os.environ.get("XLAC_CUDA_ON_GPU"):
        pytest.skip("of the driver that simulates")
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent,
                          env={**os.environ, "XLAC_CUDA_SIM_CAPABILITY": "75", "XLAC_CUDA_SIM_FAIL": "nvrtcGetNumSupportedArchs:1:1", "PYTHONPATH": os.pathsep.join(sys.path)})
    assert made.returncode == 0 and made.stdout.strip() == "False", made.stderr


# What is elementwise of a product: a bias of columns, one of rows and batches, a value that is used twice, another type, a reshape in between.
ENDS = {
    "bias and gelu": ("bf16[2,40,24]", ["b = f32[24] parameter(2)", "bb = f32[2,40,24] broadcast(b), dimensions={2}", "s = f32[2,40,24] convert(d)",
                                        "x = f32[2,40,24] add(s, bb)", "t = f32[2,40,24] tanh(x)", "y = f32[2,40,24] multiply(x, t)",
                                        "ROOT r = bf16[2,40,24] convert(y)"]),
    "residual of other shape": ("f32[2,40,24]", ["b = f32[2,40] parameter(2)", "c = f32[2,1,40,24] parameter(3)", "bb = f32[2,40,24] broadcast(b), dimensions={0,1}",
                                                 "x = f32[2,40,24] multiply(d, bb)", "f = f32[2,1,40,24] reshape(x)", "y = f32[2,1,40,24] add(f, c)",
                                                 "ROOT r = f16[2,1,40,24] convert(y)"]),
    "a triangle": ("f32[2,40,24]", ["z = f32[] constant(0)", "zb = f32[2,40,24] broadcast(z), dimensions={}", "i = s32[2,40,24] iota(), iota_dimension=1",
                                    "j = s32[2,40,24] iota(), iota_dimension=2", "g = pred[2,40,24] compare(i, j), direction=GE",
                                    "ROOT r = f32[2,40,24] select(g, d, zb)"]),
}


def ended(t, result, lines, terms=32):
    return "\n".join(["HloModule m", "ENTRY e {", f"p = {t}[2,40,{terms}] parameter(0)", f"q = {t}[2,24,{terms}] parameter(1)",
                      f"d = {result} dot(p, q), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}", *lines, "}"])


def compare(module, near=0.0, **options):
    exe = xlac.compile(module, device="cuda", **options)
    args = [values(x.shape, x.dtype, i) for i, x in enumerate(exe.inputs)]
    got, want = exe(*args), xlac.interpret(module, *args)
    for a, b in zip(*([x] if not isinstance(x, (list, tuple)) else x for x in (got, want))):
        np.testing.assert_allclose(np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64), rtol=near, atol=near)
    return exe.explain("fusion")


@pytest.mark.parametrize("end", ENDS)
def test_what_is_elementwise_of_a_product_is_part_of_its_kernel(end, monkeypatch):
    result, lines = ENDS[end]
    report = compare(ended("bf16", result, lines))
    assert "fusion product" in report and "program e, 0 bytes of frame" in report and report.count("on tensor cores") == 1
    monkeypatch.delenv("XLAC_CUBLASLT")
    assert "fusion product" in compare(ended("bf16", result, lines))  # few terms
    assert "fusion product" not in compare(ended("bf16", result, lines, terms=512))
    assert "fusion product" not in compare(ended("bf16", result, lines), fuse=False)


def test_bytes_are_scaled_where_they_are_summed(monkeypatch):
    """Where terms are few; their sums of 32 bits take memory longer than cuBLASLt gains."""
    monkeypatch.delenv("XLAC_CUBLASLT")
    lines = ["c = f32[] constant(0.0625)", "cb = f32[2,40,24] broadcast(c), dimensions={}", "s = f32[2,40,24] convert(d)", "x = f32[2,40,24] multiply(s, cb)",
             "ROOT r = s8[2,40,24] convert(x)"]
    assert "fusion product" in compare(ended("s8", "s32[2,40,24]", lines, terms=320))
    assert "fusion product" not in compare(ended("s8", "s32[2,40,24]", lines, terms=1280))


@pytest.mark.parametrize("lines", [["n = f32[2,40,24] negate(d)", "e = f32[2,40,24] exponential(d)", "ROOT t = (f32[2,40,24], f32[2,40,24]) tuple(n, e)"],
                                   ["n = f32[2,40,24] negate(d)", "ROOT t = (f32[2,40,24], f32[2,40,24]) tuple(n, d)"],
                                   ["r = f32[2,40,24] reverse(d), dimensions={2}", "ROOT a = f32[2,40,24] add(d, r)"]])
def test_what_is_left_to_kernels_of_its_own(lines):
    assert "fusion product" not in compare(ended("bf16", "f32[2,40,24]", lines), 1e-6)


LANES = """
extern "C" __global__ void k(float *c, const unsigned *a, const unsigned *b, int lanes) {
  float sums[4] = {};
  if (threadIdx.x < lanes)
    asm volatile("INSTRUCTION {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[4 * threadIdx.x]), "r"(a[4 * threadIdx.x + 1]), "r"(a[4 * threadIdx.x + 2]), "r"(a[4 * threadIdx.x + 3]), "r"(b[2 * threadIdx.x]),
                   "r"(b[2 * threadIdx.x + 1]));
  for (int i = 0; i < 4; i++) c[4 * threadIdx.x + i] = sums[i];
}
"""
F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


@pytest.fixture
def cuda():
    if os.environ.get("XLAC_CUDA_ON_GPU"):
        pytest.skip("of the driver that simulates")
    driver = simulator.Driver()
    yield driver
    driver.clear()


def test_the_simulated_fragments_lie_as_the_ptx_isa_says(cuda):
    """a0, a1: row groupID, columns 2 threadID_in_group and the next; a2, a3: row + 8; a4 to a7: the same, 8 columns on. b0, b1: rows
    2 threadID_in_group and the next of column groupID; b2, b3: 8 rows on. c0, c1: row groupID, columns 2 threadID_in_group and the next; c2, c3: row + 8."""
    rng = np.random.default_rng(0)
    left, right = (rng.integers(-8, 9, dims).astype(np.float16) for dims in ((16, 16), (16, 8)))
    a, b, c = np.zeros((32, 8), np.float16), np.zeros((32, 4), np.float16), np.zeros((32, 4), np.float32)
    for lane in range(32):
        g, t = divmod(lane, 4)
        for i in range(8):
            a[lane, i] = left[g if i % 4 < 2 else g + 8, 2 * t + i % 2 + (8 if i >= 4 else 0)]
        for i in range(4):
            b[lane, i] = right[2 * t + i % 2 + (8 if i >= 2 else 0), g]
    at = [cuda.array(x) for x in (c, a, b)]
    cuda.launch(cuda.kernel(LANES.replace("INSTRUCTION", F16)), 1, 32, *at, ctypes.c_int32(32))
    cuda.synchronize()
    want, found = left.astype(np.float32) @ right.astype(np.float32), cuda.read(at[0], c)
    for lane in range(32):
        g, t = divmod(lane, 4)
        assert found[lane].tolist() == [want[g, 2 * t], want[g, 2 * t + 1], want[g + 8, 2 * t], want[g + 8, 2 * t + 1]]


@pytest.mark.parametrize("instruction, lanes, why", [(F16, 31, "not all lanes of a warp run the same mma"),
                                                     ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 32, "not simulated")])
def test_what_a_warp_can_not_do_is_an_error(cuda, instruction, lanes, why):
    at = cuda.array(np.zeros(256, np.float32))
    cuda.launch(cuda.kernel(LANES.replace("INSTRUCTION", instruction)), 1, 32, at, at, at, ctypes.c_int32(lanes))
    with pytest.raises(simulator.CudaError, match=why):
        cuda.synchronize()
