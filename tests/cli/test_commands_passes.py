"""opt's --print-changed, --timing and --json; shard and cluster --json."""
import json
import subprocess
import sys

PROGRAM = """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] tanh(x)
  b = f32[4] tanh(x)
  dead = f32[4] exponential(x)
  ROOT s = f32[4] add(a, b)
}
"""
SHARDED = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""
GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "a" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "b" op: "Tanh" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 1882 }
"""


def run(folder, *words, status=0):
    done = subprocess.run([sys.executable, "-m", "xlac", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done


def test_opt_says_what_each_pass_changed_and_how_long_it_took(tmp_path):
    (tmp_path / "m.hlo").write_text(PROGRAM)
    done = run(tmp_path, "opt", "m.hlo", "--passes=cse,dce,dce", "--print-changed", "--timing")
    assert done.stderr.count("changed by") == 2 and "dce changes nothing" in done.stderr
    assert any(line.startswith("-") and "exponential" in line for line in done.stderr.splitlines())
    assert "4 -> 3" in " ".join(done.stderr.split()) and "no change" in done.stderr
    assert "exponential" not in done.stdout and done.stdout.startswith("HloModule m")


def test_opt_as_json(tmp_path):
    (tmp_path / "m.hlo").write_text(PROGRAM)
    data = json.loads(run(tmp_path, "opt", "m.hlo", "--passes=dce", "--json").stdout)
    (row,) = data["passes"]
    assert row["pass"] == "dce" and row["changed"] and (row["ops_before"], row["ops"]) == (5, 4) and row["seconds"] >= 0
    assert data["before"]["ops"] == 5 and data["text"].startswith("HloModule m")
    data = json.loads(run(tmp_path, "opt", "m.hlo", "--passes=dce", "--json", "-o", "out.hlo").stdout)
    assert "text" not in data and (tmp_path / "out.hlo").read_text().startswith("HloModule m")


def test_shard_as_json(tmp_path):
    (tmp_path / "m.mlir").write_text(SHARDED)
    data = json.loads(run(tmp_path, "shard", "m.mlir", "--json", "--explain", "%arg0:1", "--remedies").stdout)
    (reshard,) = data["reshards"]
    assert reshard["opcode"] == "sdy.all_reduce" and reshard["bytes"] > 0 and "remedy" in reshard
    assert data["explained"][0]["dim"] == 1 and '"x"' in data["shardings"]["%arg0"] and "sdy.mesh" in data["text"]


def test_cluster_as_json(tmp_path):
    (tmp_path / "g.pbtxt").write_text(GRAPH)
    data = json.loads(run(tmp_path, "cluster", "g.pbtxt", "--flag=min_cluster_size=1", "--json", "--explain=x", "--why-not", "x", "a",
                          "--run=b", "--feed=x=[-1.0, 2.0]").stdout)
    assert data["clusters"] and data["nodes"]["a"] == data["nodes"]["b"] and "Placeholder" in data["why"]["x"]
    assert data["why_not"][0]["nodes"] == ["x", "a"] and len(data["values"]["b"]) == 2


def test_a_step_is_simulated(tmp_path):
    (tmp_path / "m.mlir").write_text(SHARDED)
    said = run(tmp_path, "shard", "m.mlir", "--simulate", "--svg", "m.svg", "--perfetto", "m.json").stdout
    assert "2 devices (x=2) of h100x8-ib" in said and "limited by" in said
    assert (tmp_path / "m.svg").read_text().startswith("<svg") and json.loads((tmp_path / "m.json").read_text())["traceEvents"]
    data = json.loads(run(tmp_path, "shard", "m.mlir", "--simulate", "--json", "--mesh", "x=8", "--hardware", '{"base": "tpu-v4"}').stdout)
    assert data["devices"] == 8 and data["mesh"] == {"x": 8} and data["program"] == "m.mlir" and data["hardware"] == "tpu-v4, changed"
    assert "is not a mesh" in run(tmp_path, "shard", "m.mlir", "--simulate", "--mesh", "x", status=1).stderr
    assert "is not a JSON" in run(tmp_path, "shard", "m.mlir", "--simulate", "--hardware", "{", status=1).stderr
    assert "no hardware" in run(tmp_path, "shard", "m.mlir", "--simulate", "--hardware", "abacus", status=1).stderr


def test_a_plan_is_proposed(tmp_path):
    (tmp_path / "m.mlir").write_text(SHARDED)
    said = run(tmp_path, "shard", "m.mlir", "--plan", "4", "-o", "planned.mlir").stdout
    assert "4 devices" in said and "jax.make_mesh((4,), ('x',))" in said and '"x"=4' in (tmp_path / "planned.mlir").read_text()
    assert json.loads(run(tmp_path, "shard", "m.mlir", "--plan", "4", "--json").stdout)["mesh"] == {"x": 4}
    assert "at the least" in run(tmp_path, "shard", "m.mlir", "--plan", "4", "--memory", "1B", status=1).stderr


SPLIT = PROGRAM + """// -----
HloModule broken

ENTRY e {
  ROOT x = f32[4] parametr(0)
}
// -----
""" + PROGRAM.replace("HloModule m", "HloModule last")


def test_a_pass_is_printed_before_and_after(tmp_path):
    (tmp_path / "m.hlo").write_text(PROGRAM)
    said = run(tmp_path, "opt", "m.hlo", "--passes=cse,dce", "--print-before=dce", "--print-after=cse", "-o", "o.hlo").stderr
    after, before = said.split("// -----// HLO before dce //----- //\n")
    assert after.startswith("// -----// HLO after cse //----- //\nHloModule m") and before.strip() == after.partition("\n")[2].strip()
    assert "exponential" in before and "%b" not in before and "exponential" not in (tmp_path / "o.hlo").read_text()
    wrong = run(tmp_path, "opt", "m.hlo", "--passes=cse,dce", "--print-after=csee", status=1).stderr
    assert "there is no pass 'csee'" in wrong and "did you mean cse?" in wrong


def test_what_a_pass_that_fails_was_given(tmp_path):
    (tmp_path / "m.hlo").write_text(PROGRAM)
    called = PROGRAM.replace("HloModule m\n", "HloModule m\nf {\n  p = f32[4] parameter(0)\n  q = f32[4] sine(p)\n  ROOT r = f32[4] sine(q)\n}\n")
    (tmp_path / "m.hlo").write_text(called.replace("tanh(x)", "call(x), to_apply=f"))
    said = run(tmp_path, "opt", "m.hlo", "--passes=cse,inline-calls{max-ops=1}", "--print-before=inline-calls", status=1).stderr
    assert said.startswith("// -----// HLO before the pass that failed //----- //\nHloModule m") and "would make the module larger" in said


def test_several_programs_in_one_file(tmp_path):
    (tmp_path / "m.hlo").write_text(SPLIT)
    done = run(tmp_path, "opt", "m.hlo", "--split-input-file", "--passes=dce", status=1)
    assert [part.split(",")[0].strip() for part in done.stdout.split("// -----\n")] == ["HloModule m", "HloModule last"]
    line = SPLIT.splitlines().index("  ROOT x = f32[4] parametr(0)") + 1
    assert f"m.hlo:{line}:" in done.stderr and "did you mean 'parameter'?" in done.stderr and "exponential" not in done.stdout
    rows = json.loads(run(tmp_path, "verify", "m.hlo", "--split-input-file", "--json", status=1).stdout)
    assert [row["ok"] for row in rows] == [True, False, True] and rows[1]["error"]["line"] == line
    assert run(tmp_path, "translate", "m.hlo", "--split-input-file", "--to=mlir", status=1).stdout.count("func.func public @main") == 2
    assert "--split-input-file takes each" in run(tmp_path, "verify", "m.hlo", status=1).stderr
    (tmp_path / "good.hlo").write_text(PROGRAM + "// -----\n\n// -----\n" + PROGRAM)
    assert run(tmp_path, "translate", "good.hlo", "--split-input-file").stdout.count("HloModule m") == 2
    assert "is not text" in run(tmp_path, "translate", "good.hlo", "--split-input-file", "--to=pb", "-o", "x.pb", status=1).stderr


def test_cost_and_profile_are_explained(tmp_path):
    (tmp_path / "m.hlo").write_text(PROGRAM)
    data = json.loads(run(tmp_path, "explain", "cost", "m.hlo", "--json").stdout)
    assert data["data"]["transcendentals"] >= 4 and data["data"]["by_op"] and "total" in data["text"]
    data = json.loads(run(tmp_path, "explain", "profile", "m.hlo", "--json", "--repeat=3", "-i", "f32[4]=1 2 3 4").stdout)
    assert "the median of 3 calls" in data["text"] and data["data"]["steps"][0]["seconds"] > 0
    assert "bytes_read" not in run(tmp_path, "explain", "cost", "m.hlo").stdout
