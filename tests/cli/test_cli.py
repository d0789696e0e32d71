"""The command line, as a user runs it."""
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import time

import ml_dtypes
import numpy as np
import pytest

import xlac

ADD = "HloModule m\nENTRY e {\n  x = f32[2,2] parameter(0)\n  n = s32[] parameter(1)\n  ROOT y = f32[2,2] add(x, x)\n}\n"
LOOP = """HloModule loop
body { s = s64[] parameter(0)
  one = s64[] constant(1)
  ROOT a = s64[] add(s, one) }
cond { t = s64[] parameter(0)
  end = s64[] constant(9000000000000)
  ROOT lt = pred[] compare(t, end), direction=LT }
ENTRY e { zero = s64[] constant(0)
  ROOT w = s64[] while(zero), condition=cond, body=body }
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "add.hlo").write_text(ADD)
    (tmp_path / "bad.hlo").write_text(ADD.replace("f32[2,2] add", "f32[2,3] add"))
    (tmp_path / "worse.hlo").write_text(ADD.replace("add(", "ad("))
    (tmp_path / "loop.hlo").write_text(LOOP)
    return tmp_path


def run(*args, cwd=None, input=None):
    command = [sys.executable, "-m", "xlac", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, input=input, timeout=120)


def good(*args, **kwargs):
    done = run(*args, **kwargs)
    assert done.returncode == 0, done.stderr
    return done.stdout


def bad(*args, status=1, **kwargs):
    done = run(*args, **kwargs)
    assert done.returncode == status and "Traceback" not in done.stderr
    return done.stderr


def test_version_help_and_usage():
    assert good("--version").strip() == f"xlac {xlac.__version__}"
    for command in ("run", "opt", "verify", "translate", "draw", "demo", "ops", "errors"):
        assert command in good("--help") and good(command, "--help")
    for wrong in ((), ("nope",), ("run",), ("verify", "--nope")):
        assert "usage:" in bad(*wrong, status=2)
    assert "xlac COMMAND --help" in bad(status=2)  # alone, it says what there is


def test_demo():
    out = good("demo")
    assert "agrees with XLA" in out and "ENTRY" in out and "float32[2, 16, 32]" in out
    assert re.search(r"compiled in [\d.]+ ms to \d+ kernels and \d+ routines, run in [\d.]+ ms, later in \d+ us", out)
    assert "interpret" not in out


def test_verify(files):
    assert re.search(r"add.hlo: ok: 3 ops in 1 computation,", good("verify", files / "add.hlo"))
    assert good("verify", "-q", files / "add.hlo") == ""
    done = run("verify", "add.hlo", "bad.hlo", "worse.hlo", cwd=files)
    assert done.returncode == 1 and "add.hlo: ok" in done.stdout
    assert done.stderr.split("\n") == [
        "bad.hlo:5:8: error: add is declared as f32[2,3]; its operands and attributes give f32[2,2] [XLAC-E0201 VERIFY_SHAPE]",
        "    5 |   ROOT y = f32[2,3] add(x, x)", "      |        ^",
        "worse.hlo:5:21: error: unknown opcode 'ad' [XLAC-E0101 UNKNOWN_OPCODE]",
        "    5 |   ROOT y = f32[2,2] ad(x, x)", "      |                     ^", "  hint: did you mean 'add'?", ""]


def test_stdin(files):
    assert "<stdin>: ok" in good("verify", "-", input=ADD)
    assert "<stdin>:5:8" in bad("verify", "-", input=(files / "bad.hlo").read_text())
    assert "add(" in good("translate", "-", input=ADD)


def test_missing_files_and_bad_outputs(files):
    assert "nowhere.hlo: No such file" in bad("verify", "nowhere.hlo")
    assert "Is a directory" in bad("translate", files)
    done = run("verify", "nowhere.hlo", "add.hlo", ".", "bad.hlo", cwd=files)
    assert done.returncode == 1 and "add.hlo: ok" in done.stdout and "bad.hlo:5:8" in done.stderr
    assert "nowhere.hlo: No such file" in done.stderr and ".: Is a directory" in done.stderr
    assert "No such file" in bad("translate", "add.hlo", "-o", "no/where.hlo", cwd=files)


def test_long_lines_and_odd_bytes_are_shown_safely(files):
    text = ADD.replace("add(x, x)", "add(x, x), metadata={op_name=\"" + "a" * 500 + "\"}, nope=3 /*\x1b[31m\x00*/" + "b" * 500)
    (files / "long.hlo").write_bytes(text.encode())
    shown = bad("verify", "long.hlo", cwd=files)
    assert "\x1b" not in shown and "\x00" not in shown and "..." in shown
    lines = shown.split("\n")
    assert max(map(len, lines[1:])) < 220 and lines[1][lines[2].index("^"):].startswith("nope")


def test_translate(files):
    text = good("translate", files / "add.hlo")
    assert text == xlac.parse(ADD).to_text()
    for mode in ("short", "canonical", "fingerprint"):
        assert good("translate", files / "add.hlo", f"--mode={mode}") == xlac.parse(ADD).to_text(mode=mode)
    big = "HloModule m\nENTRY e {\n  ROOT c = f32[99] constant({" + ",".join("1" * 99) + "})\n}\n"
    assert "{...}" in good("translate", "-", "--elide", input=big)
    good("translate", "add.hlo", "-o", "out.hlo", cwd=files)
    assert (files / "out.hlo").read_text() == text


def test_translate_between_forms(files):
    stable = good("translate", "--from=hlo", "--to=stablehlo", files / "add.hlo")
    assert stable == xlac.parse(ADD).to_stablehlo().to_text() and "stablehlo.add" in stable
    assert "add(" in good("translate", "--from=stablehlo", "--to=hlo", "-", input=stable)
    good("translate", "--to=bytecode", "add.hlo", "-o", "add.mlirbc", cwd=files)
    assert good("translate", "add.mlirbc", cwd=files) == stable
    (files / "opaque.hlo").write_text("HloModule m\n\nENTRY e {\n  ROOT p = opaque[] parameter(0)\n}\n")
    assert "opaque.hlo:4:8: error: StableHLO has no type for opaque[]" in bad("translate", "--to=mlir", "opaque.hlo", cwd=files)


def test_serialized_modules(files):
    good("translate", "add.hlo", "--output-format=hlo-proto", "-o", "add.pb", cwd=files)
    assert (files / "add.pb").read_bytes() == xlac.parse(ADD).to_bytes()
    assert good("translate", "add.pb", cwd=files) == good("translate", "add.hlo", cwd=files)
    good("opt", "add.pb", "--passes=dce", "--output_format=pb", "-o", "dce.pb", "--input_format=pb", cwd=files)
    assert "ok: 3 ops" in good("verify", "dce.pb", cwd=files)
    (files / "cut.pb").write_bytes((files / "add.pb").read_bytes()[:60])
    assert "cut.pb: error" in bad("verify", "cut.pb", cwd=files)
    assert "error" in bad("verify", "add.hlo", "--input-format=hlo-proto", cwd=files)


def test_documented_forms_are_read_unless_strict(files):
    (files / "atan.hlo").write_text("HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] atan(x)\n}\n")
    good("verify", "atan.hlo", cwd=files)
    assert "strict" in bad("verify", "atan.hlo", "--strict", cwd=files)
    old = run("verify", files / "atan.hlo", "--documented-forms")
    assert old.returncode == 0 and "deprecated" in old.stderr


def test_opt(files):
    out = run("opt", files / "add.hlo", "--passes=cse,dce", "--print-after-all", "--verify-each", "--stats")
    assert out.returncode == 0 and "HLO after cse" in out.stderr and "HLO after dce" in out.stderr and "ENTRY" in out.stdout
    assert "3 ops in 1 computation -> " in out.stderr
    assert "constant-folding" in good("opt", "--list-passes") and "max-elements" in good("opt", "--list_passes")
    shown = bad("opt", files / "add.hlo", "--passes=dce,nope")
    assert "--passes:1:5: error" in shown and "dce,nope\n" in shown and "--list-passes" in shown
    assert "opt needs" in bad("opt", files / "add.hlo")
    assert "bad.hlo:5:8" in bad("opt", "bad.hlo", "--passes=dce", cwd=files)


@pytest.mark.parametrize("given", [["[[1,2],[3,4]]", "7"], ["2x2xf32=1 2 3 4", "i32=7"], ["2x2xf32=[[1 2][3 4]]", "s32=7"],
                                   ["x.npy", "7"], ["@both.npz"], ["x.npy", "@n.npy"],
                                   ["f32[2,2]=1 2 3 4", "s32[]=7"], ["f32[2,2]{1,0}=[[1,2],[3,4]]", "i32[]=7"], ["f32[2, 2]=1,2,3,4", "s32=7"]])
def test_inputs_of_every_kind(files, given):
    x, n = np.float32([[1, 2], [3, 4]]), np.int32(7)
    np.save(files / "x.npy", x)
    np.save(files / "n.npy", n)
    np.savez(files / "both.npz", first=x, second=n)
    out = good("run", "add.hlo", *(f"--input={text}" for text in given), cwd=files)
    assert out.startswith("result = f32[2,2]\n[[2., 4.],\n [6., 8.]]")


def test_outputs_and_expectations(files):
    args = ["run", "add.hlo", "-i", "2x2xf32=1", "-i", "0"]
    good(*args, "-o", "out.npz", cwd=files)
    assert np.load(files / "out.npz")["result"].tolist() == [[2, 2], [2, 2]]
    good(*args, "--output=@out.npy", cwd=files)
    assert np.load(files / "out.npy").tolist() == [[2, 2], [2, 2]]
    done = run(*args, "--expected", "out.npz", cwd=files)
    assert done.returncode == 0 and "as expected" in done.stderr and done.stdout == ""
    np.save(files / "other.npy", np.float32([[2, 2], [2, 2.01]]))
    shown = bad(*args, "--expected=other.npy", cwd=files)
    assert "result[1, 1] is 2.0, expected 2.01" in shown and "1 of 4 elements" in shown
    good(*args, "--expected=other.npy", "--rel_error_bound=0.1", cwd=files)
    good(*args, "--expected=other.npy", "--abs-error-bound=0.1", cwd=files)
    np.save(files / "other.npy", np.float32([2, 2]))
    assert "dimensions [2, 2], expected [2]" in bad(*args, "--expected=other.npy", cwd=files)
    np.savez(files / "two.npz", a=np.zeros(1), b=np.zeros(1))
    assert "1 arrays, expected 2" in bad(*args, "--expected=two.npz", cwd=files)


def test_tuples_and_small_types_survive_files(files):
    text = ("HloModule m\nENTRY e {\n  a = bf16[3] parameter(0)\n  b = s4[2] parameter(1)\n"
            "  u = (s4[2], token[]) tuple(b, k)\n  ROOT t = (bf16[3], (s4[2], token[])) tuple(a, u)\n}\n")
    text = text.replace("  u =", "  k = token[] after-all()\n  u =")
    (files / "t.hlo").write_text(text)
    np.savez(files / "in.npz", a=np.array([1, 2, 3]).astype(ml_dtypes.bfloat16), b=np.array([-8, 7]).astype(ml_dtypes.int4))
    good("run", "t.hlo", "-i", "in.npz", "-o", "out.npz", cwd=files)
    assert list(np.load(files / "out.npz").files) == ["result_0", "result_1_0"]
    good("run", "t.hlo", "-i", "in.npz", "--expected=in.npz", cwd=files)
    out = good("run", "t.hlo", "-i", "in.npz", cwd=files)
    assert "result_0 = bf16[3]" in out and "result_1_0 = s4[2]\n[-8, 7]" in out and "result_1_1 = token[]" in out
    assert "a .npy file holds one array" in bad("run", "t.hlo", "-i", "in.npz", "-o", "out.npy", cwd=files)


DICE = """HloModule dice
ENTRY e { low = s32[] constant(0)
  high = s32[] constant(1000000)
  r = s32[4] rng(low, high), distribution=rng_uniform
  p = u32[] partition-id()
  k = u32[] replica-id()
  ROOT t = (s32[4], u32[], u32[]) tuple(r, p, k) }
"""
PROBED = """module @m {
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = interpreter.probe %arg0, probe_id = "seen" : tensor<2xf32>
    %1 = stablehlo.add %0, %0 : tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}
"""


@pytest.mark.parametrize("device", ["cpu", "interp"])
def test_options_of_run_do_the_same_on_both_devices(files, device):
    (files / "dice.hlo").write_text(DICE)
    on = ["run", "dice.hlo", f"--device={device}"]
    out = good(*on, "--seed=3", "--replica=5", "--partition=7", cwd=files)
    assert out == good("run", "dice.hlo", "--seed=3", "--replica=5", "--partition=7", cwd=files) != good(*on, "--seed=4", cwd=files)
    assert "result_1 = u32[]\n7\n" in out and "result_2 = u32[]\n5\n" in out
    good(*on, "--seed=3", "-o", "r.npz", cwd=files)
    assert "as expected" in run(*on, "--seed=3", "--expected=r.npz", cwd=files).stderr
    assert "mismatch" in bad(*on, "--seed=4", "--expected=r.npz", cwd=files)
    times = run(*on, "--time", "--iterations=2", cwd=files).stderr
    assert times.count("run: ") == 2 and times.count("compile: ") == (device == "cpu")
    assert "result = f32[2,2]" in good("run", "add.hlo", f"--device={device}", "--passes=cse,dce", "--print-literals", cwd=files)


def test_options_that_belong_to_one_device_say_so(files):
    assert "--probes needs the interpreter" in bad("run", "add.hlo", "--probes=seen", cwd=files)
    for option in ("--threads=2", "--numerics=fast"):
        good("run", "add.hlo", option, cwd=files)
        assert f"{option.split('=')[0]} needs the compiler" in bad("run", "add.hlo", "--device=interp", option, cwd=files)
    assert "--threads: expected a whole number, at least 0, found '-1'" in bad("run", "add.hlo", "--threads=-1", status=2, cwd=files)
    assert "--iterations: expected a whole number, at least 1, found '0'" in bad("run", "add.hlo", "--iterations=0", status=2, cwd=files)
    assert "kinds of devices are cpu, interp" in bad("run", "add.hlo", "--device=gpu", cwd=files)


def test_probes_are_written_by_the_interpreter(files):
    (files / "probed.mlir").write_text(PROBED)
    good("run", "probed.mlir", "--device=interp", "--probes=seen", "-i", "f32[2]=1 2", cwd=files)
    assert (files / "seen" / "index.csv").read_text().startswith("seen,") and np.load(files / "seen" / "probe1.npy").tolist() == [1, 2]


def test_what_the_interpreter_runs_after_all_is_noted(files):
    (files / "open.hlo").write_text("HloModule m\nENTRY e {\n  x = f32[<=4] parameter(0)\n  ROOT y = f32[<=4] add(x, x)\n}\n")
    np.save(files / "x.npy", np.float32([1, 2, 3]))
    done = run("run", "open.hlo", "-i", "x.npy", cwd=files)
    assert done.returncode == 0 and "[2., 4., 6.]" in done.stdout and "note: the interpreter runs this program, since" in done.stderr
    assert "note" not in run("run", "open.hlo", "-i", "x.npy", "--device=interp", cwd=files).stderr


def test_random_inputs_are_seeded(files):
    def result(*args):
        return good("run", "add.hlo", *args, cwd=files)

    assert result() == result("--seed=0") == result("--random-init-input-literals") != result("--random_seed=1")
    assert "drawing 2 random inputs" in run("run", "add.hlo", cwd=files).stderr
    assert "argument_0 = f32[2,2]" in result("--print_literals")
    assert run("run", "add.hlo", "--iterations=3", "--time", cwd=files).stderr.count("run: ") == 3


def test_every_element_type_is_drawn(files):
    names = [row["name"] for row in xlac._core.dtype_table()]
    lines = [f"  p{i} = {name}[2,3] parameter({i})" for i, name in enumerate(names)]
    types = ", ".join(f"{name}[2,3]" for name in names)
    operands = ", ".join(f"p{i}" for i in range(len(names)))
    (files / "all.hlo").write_text("HloModule m\nENTRY e {\n" + "\n".join(lines) + f"\n  ROOT t = ({types}) tuple({operands})\n}}\n")
    good("run", "all.hlo", "--random-init-input-literals", "-o", "out.npz", cwd=files)
    good("run", "all.hlo", "-i", "out.npz", "--expected=out.npz", cwd=files)


@pytest.mark.parametrize("args, words", [
    (["-i", "[[1,2],[3,4]]"], r"expected 2 arguments \(x, n\), found 1"),
    (["-i", "2x3xf32=1", "-i", "0"], r"argument 0 \(x\) must be f32\[2,2\], found f32\[2,3\]"),
    (["-i", "foo"], "neither a file nor an array"),
    (["-i", "nowhere.npy"], "No such file"),
    (["-i", "add.hlo.npy"], "No such file"),
    (["-i", "2x2xf32=1 2 3"], "3 numbers for 4 elements"),
    (["-i", "2x2xf32=a b"], "malformed"),
    (["-i", "2x2xf31=1"], "no element type 'f31'"),
    (["-i", "f31[2,2]=1"], "no element type 'f31'"),
    (["-i", "f32[2,2]=1 2 3"], "3 numbers for 4 elements"),
    (["-i", "f32[2,2=1"], "neither a file nor an array"),
    (["--device=interp", "-i", "f32[3]=1", "-i", "0"], r"argument 0 \(x\) must be f32\[2,2\], found f32\[3\]"),
    (["-i", "[[1,2],[3]]"], "not an array of f32"),
    (["-i", "1", "-i", "2", "-i", "3"], "no parameter to go to"),
    (["--passes=nope"], "--passes"),
])
def test_bad_inputs_are_explained(files, args, words):
    assert re.search(words, bad("run", "add.hlo", *args, cwd=files))


def test_files_that_are_no_arrays(files):
    (files / "x.npy").write_bytes(b"not an array")
    (files / "x.npz").write_bytes(b"PK\x03\x04nor this")
    for name in ("x.npy", "x.npz"):
        assert "no .npy or .npz file" in bad("run", "add.hlo", "-i", name, cwd=files)
    np.save(files / "o.npy", np.array([object()]), allow_pickle=True)
    assert "no .npy or .npz file" in bad("run", "add.hlo", "-i", "o.npy", cwd=files)


def test_draw(files):
    assert "<svg" in good("draw", files / "add.hlo") and good("draw", files / "add.hlo", "--format=dot").startswith("digraph")
    good("draw", "add.hlo", "-o", "add.html", cwd=files)
    good("draw", "add.hlo", "-o", "add.dot", cwd=files)
    assert "</html>" in (files / "add.html").read_text() and (files / "add.dot").read_text().startswith("digraph")


@pytest.mark.parametrize("text, devices, words", [
    ("sdy.mesh @mesh = <[\"a\"=4, \"b\"=2]>\nfunc.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {\"b\"}]>}) -> tensor<8xf32> {\n"
     "  %0 = stablehlo.constant dense<0.0> : tensor<f32>\n  %1 = stablehlo.reduce(%x init: %0) applies stablehlo.add across dimensions = [1] : "
     "(tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>\n  return %1 : tensor<8xf32>\n}\n", 8, "all_reduce along b"),
    ("HloModule m, num_partitions=4\nENTRY e {\n  p = f32[4] parameter(0), sharding={devices=[4]<=[4]}\n  ROOT r = f32[4] add(p, p)\n}\n", 4, "shards of [1]"),
    ("HloModule m, replica_count=2\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] add(p, p)\n}\n", 2, "2 replicas of 1"),
], ids=["mesh", "partitions", "replicas"])
def test_explain_sharding_knows_how_many_devices_a_program_is_for(tmp_path, text, devices, words):
    program = tmp_path / "program"
    program.write_text(text)
    said = good("explain", "sharding", program)
    assert f"{devices} devices: " in said and words in said
    assert json.loads(good("explain", "sharding", program, "--json"))["data"]["devices"] == devices
    assert f"devices={devices}" in bad("explain", "sharding", program, "--devices=3")


def test_explain(files):
    assert "no async ops" in good("explain", "async", files / "add.hlo")
    assert "hidden" in good("explain", "async", files / "add.hlo", "--passes=async-wrap", "--link-gigabytes=5")
    assert "steps" in good("explain", "schedule", files / "add.hlo")
    for topic in ("async", "fusion", "kernels", "schedule", "cost", "memory", "donation", "profile", "sharding"):
        data = json.loads(good("explain", topic, files / "add.hlo", "--json"))
        assert data["topic"] == topic and data["text"]
    assert "unknown pass" in bad("explain", "async", files / "add.hlo", "--passes=nope")


def test_ops_and_errors():
    assert len(good("ops").splitlines()) == len(xlac._core.opcode_table())
    assert "lhs_contracting_dims: ints" in good("ops", "dot") and "no op 'nope'" in bad("ops", "nope")
    assert "XLAC-E0201" in good("errors") and good("errors", "XLAC-E0201") == good("errors", "201")
    assert "no error code" in bad("errors", "E9999")


def test_ctrl_c_ends_cleanly(files):
    process = subprocess.Popen([sys.executable, "-m", "xlac", "run", "loop.hlo"], cwd=files, stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in stderr and "Traceback" not in stderr


def test_progress_on_a_terminal(files):
    master, slave = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "xlac", "run", "loop.hlo"], cwd=files, stderr=slave, stdout=slave)
    os.close(slave)
    seen, deadline = b"", time.monotonic() + 60
    while b"running loop ... " not in seen and time.monotonic() < deadline:
        seen += os.read(master, 1000)
    process.send_signal(signal.SIGINT)
    process.wait(60)
    os.close(master)
    assert b"running loop ... 1." in seen and process.returncode == 130


def test_a_closed_pipe_is_no_crash(files):
    text = "HloModule m\nENTRY e {\n  ROOT c = f32[60000] constant({" + ",".join(["1.5"] * 60000) + "})\n}\n"
    (files / "big.hlo").write_text(text)
    done = subprocess.run(f"{sys.executable} -m xlac translate big.hlo | head -c 10", shell=True, cwd=files, capture_output=True, text=True)
    assert "Traceback" not in done.stderr and done.stdout == "HloModule "


def test_the_demo_program_is_small_and_machine_free():
    folder = pathlib.Path(xlac.__file__).parent / "demos"
    text = (folder / "transformer_block.hlo").read_text()
    assert len(text) < 60_000 and "source_file" not in text
    assert len(json.loads((folder / "transformer_block.json").read_text())["inputs"]) == 11
