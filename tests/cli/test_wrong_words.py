"""What the command line says to a word, a number or a file that it does not expect: never a traceback, and what was meant where that can be guessed."""
import re

import pytest

import xlac
from xlac import cli

PROGRAM = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] add(x, x)\n}\n"


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.hlo").write_text(PROGRAM)
    return "p.hlo"


def said(capsys, *words):
    """(exit status, standard error)"""
    try:
        status = cli.main(list(words))
    except SystemExit as end:
        status = end.code
    return status, capsys.readouterr().err


@pytest.mark.parametrize("words, meant", [
    (["convert", "p.hlo"], "translate"), (["profile", "p.hlo"], "bench"), (["verfy", "p.hlo"], "verify"), (["explain", "memry", "p.hlo"], "memory"),
    (["run", "p.hlo", "--numerics", "strickt"], "strict"), (["version"], "--version")])
def test_what_was_meant(capsys, file, words, meant):
    status, text = said(capsys, *words)
    assert status == 2 and f"did you mean {meant}" in text


@pytest.mark.parametrize("words", [
    ["bench", "--repeat", "0"], ["bench", "--repeat", "x"], ["bench", "--seconds", "-1"], ["bench", "--threads", "-1"], ["run", "--iterations", "0"],
    ["run", "--seed", "-1"], ["run", "--threads", "-3"], ["run", "--replica", "-1"], ["run", "--rel-error-bound", "nan"], ["reduce", "--limit", "0"],
    ["diff", "--seed", str(2 ** 64)], ["explain", "async", "--gigaflops", "-1"]])
def test_numbers_have_bounds(capsys, file, words):
    status, text = said(capsys, *words, file)
    assert status == 2 and "expected a " in text and repr(words[-1]) in text


def test_an_error_in_a_graph_names_its_file_and_shows_the_place(capsys, file):
    status, text = said(capsys, "cluster", file)
    assert status == 1 and text.startswith("p.hlo:1:1: ") and "HloModule m" in text


def test_a_mark_of_byte_order_is_no_part_of_a_program(capsys, file, tmp_path):
    (tmp_path / "p.hlo").write_bytes(b"\xef\xbb\xbf" + PROGRAM.encode())
    assert said(capsys, "verify", file)[0] == 0


def test_a_page_is_not_written_to_a_terminal(capsys, file, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    status, text = said(capsys, "explore", file, "--no-passes")
    assert status == 0 and "p.html" in text and (tmp_path / "p.html").read_text().startswith("<!doctype html>")


def test_gpu_is_called_cuda(capsys, file):
    status, text = said(capsys, "run", file, "--device", "gpu")
    assert status == 1 and '"cuda" is an NVIDIA GPU' in text


@pytest.mark.parametrize("content, hint", [
    (b"", "it is empty"), (b" \n", "it is empty"), (b"\x1f\x8b\x08\x00abc", "gunzip"), (b"PK\x03\x04....", "zip archive"), (b"\x7fELF\x02", "machine code"),
    ("HloModule m".encode("utf-16"), "UTF-16"), (b'{"a": 1}', "JSON"), (b"import jax\n", "Python"), (b"; ModuleID = 'x'\n", "LLVM IR"),
    (b"BufferAssignment:\nallocation 0: size 4\n", "XLA's reports"), (b'node {\n  name: "x"\n}\n', "TensorFlow graph"), (b"{ lambda ; a:f32[4]. let", "jaxpr"),
])
def test_files_that_are_no_programs(tmp_path, capsys, content, hint):
    (tmp_path / "x.hlo").write_bytes(content)
    status, text = said(capsys, "verify", str(tmp_path / "x.hlo"))
    assert status == 1 and "x.hlo:" in text and hint in text
    with pytest.raises(xlac.ParseError, match=re.escape(hint)):
        xlac.parse(tmp_path / "x.hlo")


@pytest.mark.parametrize("line, message, hint", [
    ("%0 = stablehlo.maximun %x, %x : tensor<4xf32>", "unregistered operation", "did you mean 'stablehlo.maximum'?"),
    ("%0 = stablehlo.max %x, %x : tensor<4xf32>", "unregistered operation", "did you mean 'stablehlo.maximum'?"),
    ("%0 = stablehlo.qqqqqqq %x : tensor<4xf32>", "unregistered operation", "docs/ops.md"),
    ("%0 = stablehlo.abs %x : tensor<4xfloat32>", "invalid tensor element type", "f32, bf16, i32"),
    ("%0 = stablehlo.abs %x : tensor<4xs32>", "invalid tensor element type", "HLO's s32, u8 and pred"),
])
def test_misspelt_stablehlo(line, message, hint):
    text = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  {line}\n  return %x : tensor<4xf32>\n}}\n"
    with pytest.raises(xlac.ParseError, match=f"(?s){message}.*{re.escape(hint)}") as caught:
        xlac.parse(text)
    assert caught.value.line == 2
    with pytest.raises(xlac.ParseError, match="did you mean 'module'"):
        xlac.parse("modul @m {\n}\n")


@pytest.mark.parametrize("words, status, hint", [
    (["run", "p.hlo", "x.npy"], 2, "--input=x.npy"), (["run", "p.hlo", "--inputs", "x.npy"], 2, "did you mean --input"), (["run", "p.hlo", "--quiet"], 2, "xlac run --help"),
    (["opt", "p.hlo", "--cse"], 2, "--passes=cse"), (["opt", "p.hlo", "cse,dce"], 2, "--passes=cse,dce"), (["opt", "p.hlo"], 1, "opt needs passes"),
    (["opt", "--passes=cse"], 1, "opt needs a file"), (["translate", "p.hlo", "p.hlo"], 2, "one program at a time"), (["p.hlo"], 2, "the command comes first"),
    (["--json", "verify", "p.hlo"], 2, "comes after it"), (["explain", "p.hlo", "fusion"], 2, "the topic comes before the file"),
    (["diff", "p.hlo", "no.hlo"], 1, "no.hlo: No such file"), (["diff", "p.hlo", "p.hlo", "p.hlo"], 1, "two programs are compared at a time"),
    (["draw", "p.hlo", "-o", "p.png"], 1, "dot -Tpng"), (["shard", "p.hlo", "--mesh", "a=2"], 1, "nothing without --simulate"),
    (["shard", "p.hlo", "--memory", "1GB"], 1, "nothing without --plan"), (["translate", "p.hlo", "--from", "mlir"], 1, "this is HLO, read as MLIR"),
    (["run", "p.hlo", "-i", "float[2]=1"], 1, "did you mean f32"), (["run", "p.hlo", "-i", "qq[2]=1"], 1, "there are pred"),
    (["run", "p.hlo", "-o", "r.txt"], 1, "written as .npz or .npy"), (["run", "p.hlo", "-o", "no/r.npz"], 1, "no such folder"),
    (["cluster", "p.hlo", "--flag", "min_cluster=2"], 1, "did you mean min_cluster_size"), (["cluster", "."], 1, "Is a directory"),
])
def test_what_to_do_instead(capsys, file, words, status, hint):
    found, text = said(capsys, *words)
    assert found == status and hint in text, text
    assert "drawing" not in text, "before anything runs"


def test_a_program_without_shardings_says_so(capsys, file):
    status, text = said(capsys, "shard", file, "--reshards")
    assert status == 0 and "p.hlo has no shardings" in text


def test_ways_of_bench_that_are_not_installed(capsys, file, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "iree", None)
    status = cli.main(["bench", file, "--way", "iree"])
    assert status == 1 and "pip install iree-base-compiler" in capsys.readouterr().out
    assert cli.main(["bench", file, "--way", "compiled,interpreter", "--repeat", "1"]) == 0
    assert re.search("compiled.*\n.*interpreter", capsys.readouterr().out)


def test_long_work_shows_its_seconds_on_a_terminal_and_leaves_no_trace(capsys, monkeypatch):
    import time

    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(cli, "PROGRESS_AFTER", 0)
    seen = ""
    with cli.progress("thinking"):
        until = time.monotonic() + 60
        while "thinking" not in seen and time.monotonic() < until:
            seen += capsys.readouterr().err
    assert "\rthinking ... " in seen and capsys.readouterr().err.endswith("\r" + " " * 60 + "\r")
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    with cli.progress("thinking"):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("word, meant", [
    ("exp", "did you mean exponential"), ("frobnicate", "`xlac ops` lists"), ("expo", "did you mean exponential"), ("multiplt", "did you mean multiply")])
def test_ops_by_other_names(capsys, word, meant):
    status, text = said(capsys, "ops", word)
    assert status == 1 and f"no op '{word}'" in text and meant in text
