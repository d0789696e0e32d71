"""bench, reduce, completion, and --json: what programs read."""
import base64
import json
import subprocess
import sys

import pytest

import xlac
from xlac import benchmark, reduction
from xlac.cli import main

TEXT = """
HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[4,4] parameter(0)
  y = f32[4,4] parameter(1)
  t = f32[4,4] tanh(x)
  m = f32[4,4] multiply(t, y)
  zero = f32[] constant(0)
  r = f32[4] reduce(m, zero), dimensions={1}, to_apply=add
  l = f32[4] log(r)
  n = f32[4] negate(l)
  ROOT z = (f32[4], f32[4,4]) tuple(n, m)
}
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    return str(path)


def printed(capsys, *argv, status=0):
    assert main([str(a) for a in argv]) == status
    return capsys.readouterr().out


def test_reduction_leaves_what_fails():
    smaller = xlac.reduce(TEXT, lambda module: any(op.opcode == "log" for op in module.entry))
    assert [op.opcode for op in smaller.entry] == ["parameter", "log"]
    smaller = xlac.reduce(TEXT, lambda module: "tanh" in module.to_text() and "reduce(" in module.to_text())
    assert sorted(op.opcode for op in smaller.entry) == ["constant", "parameter", "reduce", "tanh"] or len(smaller.entry) == 4
    assert smaller.verify() is None
    assert xlac.reduce(xlac.parse(TEXT).to_stablehlo(), lambda module: "log" in module.to_text()).stats()["ops"] == 2


def test_reduction_asks_no_more_than_allowed_and_needs_a_failure():
    asked = []
    xlac.reduce(TEXT, lambda module: asked.append(1) or "log" in module.to_text(), limit=3)
    assert len(asked) <= 4
    with pytest.raises(ValueError, match="does not fail"):
        xlac.reduce(TEXT, lambda module: False)


def test_a_difference_of_engines_is_a_failure():
    fails = reduction.differs("interpreter", "compiled")
    assert not fails(xlac.parse(TEXT))
    exact = reduction.differs("interpreter", "fast", rtol=0, atol=0)
    if exact(xlac.parse(TEXT)):  # fast numerics may be exact on some machine
        assert len(xlac.reduce(TEXT, exact).entry) < 10


def test_reduce_by_a_command(program, capsys, tmp_path):
    check = tmp_path / "check.py"
    check.write_text("import sys\nsys.exit('log' in open(sys.argv[1]).read())\n")
    found = json.loads(printed(capsys, "reduce", program, "--command", f"{sys.executable} {check} {{}}", "--json"))
    assert found["after"] == 2 and "log(" in found["text"] and found["tried"] > 1
    assert main(["reduce", program, "--command", "true"]) == 1
    said = capsys.readouterr().err
    assert "does not fail" in said and "hint:" in said and "--command" in said


def test_bench(program, capsys):
    found = json.loads(printed(capsys, "bench", program, "--way", "compiled", "--way", "interpreter", "--repeat", "2", "--json", "--random-init-input-literals"))
    for way in ("compiled", "interpreter"):
        row = found["ways"][way]
        assert 0 < row["min_seconds"] <= row["median_seconds"] and row["samples"] == 2 and row["compile_seconds"] > 0
    assert "median" in printed(capsys, "bench", program, "--repeat", "1", "--random-init-input-literals")
    assert main(["bench", program, "--way", "slow", "--random-init-input-literals"]) == 1
    assert "compiled, fast" in capsys.readouterr().err


def test_xla_is_measured_where_it_is():
    pytest.importorskip("jax")
    found = benchmark.measure(TEXT, ways=("compiled", "xla"), repeat=2)
    assert found["xla"]["median_seconds"] > 0, found
    assert "xla" in repr(found)


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_completion(shell, capsys):
    text = printed(capsys, "completion", shell)
    assert "explore" in text and "reduce" in text and ("--repeat" in text or "-l repeat" in text)
    if shell == "bash":
        code = text + "\nCOMP_WORDS=(xlac bench --rep); COMP_CWORD=2; _xlac; echo ${COMPREPLY[@]}\nCOMP_WORDS=(xlac expl); COMP_CWORD=1; _xlac; echo ${COMPREPLY[@]}"
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split("\n")[:2] == ["--repeat", "explain explore"]


def test_json_of_the_other_commands(program, capsys, tmp_path):
    bad = tmp_path / "bad.hlo"
    bad.write_text(TEXT.replace("f32[4,4] tanh", "f32[5,4] tanh"))
    good, wrong, gone = json.loads(printed(capsys, "verify", program, bad, tmp_path / "none.hlo", "--json", status=1))
    assert good["ok"] and good["ops"] == 12 and not wrong["ok"] and wrong["error"]["line"] == 11 and wrong["error"]["code"] == 201
    assert not gone["ok"] and "No such file" in gone["error"]["message"]
    assert json.loads(printed(capsys, "diff", program, "--json", "--random-init-input-literals")) == {"program": program, "differs": False}
    found = json.loads(printed(capsys, "explain", "memory", program, "--json"))
    assert found["topic"] == "memory" and "peak" in found["text"] and found["data"]["argument_bytes"] == 128
    assert any(row["name"] == "dot" for row in json.loads(printed(capsys, "ops", "--json")))
    assert json.loads(printed(capsys, "errors", "XLAC-E0201", "--json"))[0]["name"] == "VERIFY_SHAPE"
    result = json.loads(printed(capsys, "run", program, "--json", "--random-init-input-literals"))
    assert [row["type"] for row in result["results"]] == ["f32[4]", "f32[4,4]"] and len(result["results"][1]["data"]) == 4
    assert "dce" in json.loads(printed(capsys, "opt", "--list-passes", "--json"))


def test_help_has_examples(capsys):
    for command in ("bench", "reduce", "run", "explore", "verify", "opt", "diff", "explain", "shard", "cluster"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        out = capsys.readouterr().out
        assert "example" in out and f"xlac {command}" in out, command


def test_programs_for_other_compilers_keep_their_arguments():
    from xlac.benchmark import measure, stablehlo

    module = xlac.parse("HloModule m, input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }\nENTRY e {\n  x = f32[4] parameter(0)\n"
                        "  y = f32[4] parameter(1)\n  ROOT r = f32[4] add(x, y)\n}")
    text = stablehlo(module)
    assert "alias" not in text and "donor" not in text and xlac.parse(text).verify() is None
    found = measure(module, ways=("compiled", "iree"), repeat=2)
    assert "median_seconds" in found["compiled"] and ("error" in found["iree"] or found["iree"]["samples"] == 2)


def test_json_of_translate(program, capsys, tmp_path):
    found = json.loads(printed(capsys, "translate", program, "--to=mlir", "--json"))
    assert (found["name"], found["format"], found["ops"]) == ("m", "mlir", 12) and "stablehlo.tanh" in found["text"]
    assert json.loads(printed(capsys, "translate", program, "--json"))["format"] == "hlo"
    raw = base64.b64decode(json.loads(printed(capsys, "translate", program, "--to=pb", "--json"))["base64"])
    assert xlac.parse(raw).stats()["ops"] == 12
    row = json.loads(printed(capsys, "translate", program, "--json", "-o", tmp_path / "other.hlo"))
    assert row["output"] == str(tmp_path / "other.hlo") and "text" not in row and "tanh" in (tmp_path / "other.hlo").read_text()
    two = tmp_path / "two.hlo"
    two.write_text(f"{TEXT}// -----\n{TEXT.replace('HloModule m', 'HloModule n')}")
    lines = printed(capsys, "translate", two, "--split-input-file", "--json").splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["m", "n"]


def test_json_of_pictures_and_pages(program, capsys, tmp_path):
    found = json.loads(printed(capsys, "draw", program, "--json"))
    add, entry = found["computations"]
    assert not add["entry"] and entry["entry"] and entry["root"] == "z"
    by_name = {op["name"]: op for op in entry["ops"]}
    assert by_name["r"] == {"name": "r", "opcode": "reduce", "type": "f32[4]", "family": "reduction", "operands": ["m", "zero"], "waits_for": [],
                            "calls": ["add"]}
    printed(capsys, "draw", program, "--json", "-o", tmp_path / "m.html")
    assert "<svg" in (tmp_path / "m.html").read_text()
    found = json.loads(printed(capsys, "explore", program, "--json", "-o", tmp_path / "page.html"))
    assert found["main"]["ops"]["name"][-1] == "z" and found["texts"]["stages"] and "<!doctype html>" in (tmp_path / "page.html").read_text()
    assert "memory" in json.loads(printed(capsys, "explore", program, "--json"))


def test_json_of_demo_and_completion(capsys):
    found = json.loads(printed(capsys, "demo", "--json"))
    assert found["agrees"] and found["ops"] == 182 and found["result"] == "float32[2, 16, 32]" and found["seconds"]["run"] > 0
    assert json.loads(printed(capsys, "completion", "--json"))["run"]["flags"]["--numerics"] == ["strict", "fast"]


def test_json_beside_a_file(program, capsys, tmp_path):
    out = tmp_path / "out"
    drawn = "--random-init-input-literals"
    row = json.loads(printed(capsys, "run", program, "--json", drawn, "-o", f"{out}.npz"))
    assert row["output"] == f"{out}.npz" and row["results"][0] == {"name": "result_0", "type": "f32[4]"}
    assert printed(capsys, "explain", "memory", program, "--json", "-o", out) == "" and json.loads(out.read_text())["topic"] == "memory"
    row = json.loads(printed(capsys, "reduce", program, "--command", "false", "--json", "-o", out))
    assert row["after"] < row["before"] and "text" not in row and xlac.parse(out.read_text()).stats()["ops"] == row["after"]
