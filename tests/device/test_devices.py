"""Devices from Python and the command line: by name, beside each other, and what each stage of compiling leaves."""
import subprocess
import sys
import threading

import numpy as np
import pytest

import xlac

CHAIN = """HloModule chain
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] tanh(x)
  ROOT z = f32[8] multiply(y, x)
}
"""
X = np.linspace(-2, 2, 8, dtype=np.float32)


@pytest.mark.parametrize("device", ["cpu", "cpu:0", "cpu:1", "interp", "interp:0"])
def test_a_program_runs_on_each_device_with_the_same_bits(device):
    exe = xlac.compile(CHAIN, device=device)
    assert exe.device == (device if ":" in device else device + ":0")
    assert exe(X).tobytes() == xlac.interpret(CHAIN, X).tobytes()


def test_devices_are_listed_and_can_be_asked_for():
    xlac.compile(CHAIN, device="cpu:3")
    names = [str(d) for d in xlac.devices()]
    assert names[0] == "cpu:0" and {"interp:0", "cpu:3"} <= set(names) and len(names) == len(set(names))
    third = next(d for d in xlac.devices() if d.name == "cpu:3")
    assert (third.kind, third.ordinal, third.host_visible) == ("cpu", 3, True) and third.units >= 1 and third.memory_bytes > 1 << 20
    assert xlac.compile(CHAIN, device=third).device == "cpu:3"


@pytest.mark.parametrize("device", ["", "gpu", "cpu:", "cpu:-1", "cpu:1.5", "cpu:256", "interp:x", "CPU"])
def test_a_device_that_there_is_not_is_an_error_that_says_which_there_are(device):
    with pytest.raises(xlac.Error) as error:
        xlac.compile(CHAIN, device=device)
    assert f"'{device}'" in str(error.value) and "cpu, interp" in error.value.hint


@pytest.mark.parametrize("device", [None, 1, b"cpu", ["cpu"]])
def test_a_device_is_named_by_a_string(device):
    with pytest.raises(xlac.ArgumentError, match="device must be a name"):
        xlac.compile(CHAIN, device=device)


def test_interp_runs_the_program_as_it_is():
    exe = xlac.compile(CHAIN, device="interp")
    assert exe.steps["all"] == 0 and "compiled for the interpreter" in exe.steps["why_interpreted"]
    with pytest.raises(xlac.ArgumentError) as compiled:
        exe(X[:4])
    with pytest.raises(xlac.ArgumentError) as interpreted:
        xlac.interpret(CHAIN, X[:4])
    assert str(compiled.value) == str(interpreted.value)
    assert "run whole" in exe.explain("schedule") or "interpret" in str(exe.explain("schedule"))


def test_two_contexts_share_no_memory():
    big = f"HloModule m\nENTRY e {{ x = f32[{1 << 16}] parameter(0)\n s = f32[{1 << 16}] sort(x), dimensions={{0}}, to_apply=c\n ROOT r = f32[{1 << 16}] reverse(s), dimensions={{0}} }}"
    big = big.replace("ENTRY", "c { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT l = pred[] compare(a, b), direction=LT }\nENTRY")
    x = np.random.default_rng(1).random(1 << 16, dtype=np.float32)
    used = lambda name: next(d.peak_bytes for d in xlac.devices() if d.name == name)
    exe, other = xlac.compile(big, device="cpu:5"), xlac.compile(big, device="cpu:6")
    before = used("cpu:6")
    exe(x)
    assert used("cpu:5") > 1 << 16 and used("cpu:6") == before
    other(x)
    assert used("cpu:6") > before


def test_contexts_run_at_the_same_time():
    programs = [xlac.compile(CHAIN, device=f"cpu:{i}") for i in range(4)] + [xlac.compile(CHAIN, device="interp")]
    want, wrong = xlac.interpret(CHAIN, X), []

    def call(exe):
        for _ in range(200):
            if exe(X).tobytes() != want.tobytes():
                wrong.append(exe.device)

    threads = [threading.Thread(target=call, args=(p,)) for p in programs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_saved_program_is_loaded_on_any_device():
    saved = xlac.compile(CHAIN).serialize()
    assert xlac.load(saved, device="cpu:1").device == "cpu:1"
    assert xlac.load(saved, device="interp")(X).tobytes() == xlac.interpret(CHAIN, X).tobytes()


STAGES = {"translated": "ROOT %z", "prepared": "ROOT %z", "optimised": "ROOT %z", "fused": "z", "kernels": "// e, step 0: z",
          "plan": "program e: 1 step,", "executable": "chain on cpu:0\nprogram e"}


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_of_compiling_can_be_printed_alone(stage, tmp_path):
    text = xlac.compile_stage(CHAIN, stage)
    assert STAGES[stage] in text
    path = tmp_path / "chain.hlo"
    path.write_text(CHAIN)
    done = subprocess.run([sys.executable, "-m", "xlac", "run", f"--dump={stage}", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout.rstrip("\n")) == (0, text.rstrip("\n")), done.stderr


def test_an_unknown_stage_is_an_error_that_lists_the_stages():
    with pytest.raises(xlac.Error) as error:
        xlac.compile_stage(CHAIN, "linked")
    assert "translated, prepared, optimised, fused, kernels, programs, assembly, plan, executable" in error.value.hint


def test_the_passes_show_between_two_stages():
    text = "HloModule m\nENTRY e { x = f32[4] parameter(0)\n y = f32[4] negate(x)\n ROOT z = f32[4] negate(y) }"
    assert "negate" in xlac.compile_stage(text, "prepared") and "negate" not in xlac.compile_stage(text, "optimised")


def test_the_command_line_takes_devices(tmp_path):
    path = tmp_path / "chain.hlo"
    path.write_text(CHAIN)
    outputs = set()
    for device in ("cpu", "cpu:1", "interp"):
        done = subprocess.run([sys.executable, "-m", "xlac", "run", f"--device={device}", "--random-init-input-literals", str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout)
    assert len(outputs) == 1
    done = subprocess.run([sys.executable, "-m", "xlac", "run", "--device=tpu", str(path)], capture_output=True, text=True)
    assert done.returncode != 0 and "there is no device 'tpu'" in done.stderr
