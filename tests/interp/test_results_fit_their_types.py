"""What an op gives is of its type's elements and sizes, or the run fails: nobody reads or writes past the end of a buffer. XLA's verifier lets
collectives through whose result is that of more participants than there are."""
import numpy as np
import pytest

import xlac

PROGRAMS = {
    "all-gather": "HloModule m\nENTRY e {\n  a = f32[8] parameter(0)\n  ROOT s = f32[16] all-gather(a), replica_groups=GROUPS, dimensions={0}\n}",
    "all-gather-start": "HloModule m\nENTRY e {\n  a = f32[8] parameter(0)\n  s = (f32[8], f32[16]) all-gather-start(a), replica_groups=GROUPS, "
                        "dimensions={0}\n  ROOT d = f32[16] all-gather-done(s)\n}",
    "reduce-scatter": "HloModule m\nadd {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\nENTRY e {\n"
                      "  a = f32[8] parameter(0)\n  ROOT s = f32[4] reduce-scatter(a), replica_groups=GROUPS, dimensions={0}, to_apply=add\n}",
}


@pytest.mark.parametrize("groups", ["{{0}}", "{}"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_collective_of_one_participant_that_claims_more_fails_in_all_engines(name, groups):
    module = xlac.parse(PROGRAMS[name].replace("GROUPS", groups))
    module.verify(xla_compat=True)
    a = np.ones(8, np.float32)
    executable = xlac.compile(module)
    for run in (lambda: xlac.interpret(module, a), lambda: executable(a), lambda: xlac.compile(module, passes=False)(a),
                lambda: xlac.load(executable.serialize())(a)):
        with pytest.raises(xlac.Error, match=r"run-time dimensions f32\[8\], but its type is \(?.*f32\[(16|4)\]"):
            run()


FFT = """func.func @main(%a: tensor<3x8xcomplex<f32>>) -> tensor<3x8xcomplex<f32>> {
  %0 = "stablehlo.fft"(%a) {fft_length = array<i64: 9>, fft_type = #stablehlo<fft_type KIND>} : (tensor<3x8xcomplex<f32>>) -> tensor<3x8xcomplex<f32>>
  return %0 : tensor<3x8xcomplex<f32>>
}"""


@pytest.mark.parametrize("kind", ["FFT", "IFFT"])
def test_a_length_of_fft_that_stablehlo_lets_through_fails_in_all_engines(kind):
    module = xlac.parse(FFT.replace("KIND", kind))
    module.verify()
    a = np.ones((3, 8), np.complex64)
    for run in (lambda: xlac.interpret(module, a), lambda: xlac.compile(module)(a), lambda: xlac.compile(module, passes=False)(a)):
        with pytest.raises(xlac.Error, match="fft_length asks for 9"):
            run()


@pytest.mark.parametrize("n", [0, 1])
def test_a_real_line_of_no_elements_has_a_spectrum_of_none_or_one(n):
    """StableHLO's rules say 0, XLA's 1."""
    module = xlac.parse(f"""func.func @main(%a: tensor<3x{n}xcomplex<f32>>) -> tensor<3x0xf32> {{
      %0 = "stablehlo.fft"(%a) {{fft_length = array<i64: 0>, fft_type = #stablehlo<fft_type IRFFT>}} : (tensor<3x{n}xcomplex<f32>>) -> tensor<3x0xf32>
      return %0 : tensor<3x0xf32>
    }}""")
    a = np.ones((3, n), np.complex64)
    for run in (lambda: xlac.interpret(module, a), lambda: xlac.compile(module)(a)):
        assert run().shape == (3, 0)
