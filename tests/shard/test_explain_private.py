"""Explanations of programs with private functions, as JAX lowers them for where, relu and the like (jax_private.py makes the data): each
value is compared with what the Shardy in jaxlib printed on that very value."""
import json
import lzma
import pathlib
import re
import xml.etree.ElementTree as xml

import pytest

import xlac
import xlac.sharding
from xlac import cli
from xlac.shard_values import closed

with lzma.open(pathlib.Path(__file__).with_name("jax_private.jsonl.xz"), "rt") as f:
    ROWS = {row["name"]: row for row in map(json.loads, f)}
SHARDING = r"<@\w+, \[(?:\{[^{}]*\}(?:, )?)*\](?:, \w+=\{[^{}]*\})*>"
programs = pytest.mark.parametrize("name", ROWS)


@pytest.fixture(scope="module")
def results():
    return {name: xlac.sharding.propagate(xlac.parse(row["input"])) for name, row in ROWS.items()}


def said_by(text):
    """(function, name, result, sharding) of what a module's text says of values in the bodies of functions, and of their arguments."""
    function, found = None, []
    for line in text.splitlines():
        head = re.search(r'func\.func (?:public |private )?@(?:"([^"]+)"|(\w+))\((.*?)\)(?: ->.*)? \{$', line)
        if head:
            function = head[1] or head[2]
            for name, attributes in re.findall(r"(%\w+): tensor<[^>]*>(?: \{(.*?>)\})?", head[3]):
                said = re.search(rf"sdy\.sharding = #sdy\.sharding({SHARDING})", attributes)
                found += [(function, name, said[1])] if said else []
        op = re.match(r"    (%\w+)(?::\d+)? = .*sdy\.sharding_per_value<\[(.*?)\]>\}", line)
        each = re.findall(SHARDING, op[2] + "]>" if op and not op[2].endswith(">") else op[2]) if op else []
        found += [(function, op[1] if len(each) == 1 else f"{op[1]}#{i}", one) for i, one in enumerate(each)]
    return found


def name_of(function, name):
    return name if function == "main" else f"@{function}/{name}"


def test_there_are_enough_programs_with_private_functions():
    assert sum("func.func private" in row["input"] for row in ROWS.values()) >= 20


@programs
def test_the_explained_value_has_the_sharding_that_shardy_printed_on_it(name, results):
    trace, rows = results[name].trace, said_by(ROWS[name]["shardys"])
    assert rows
    for function, value, sharding in rows:
        if "sdy.reshard" in re.search(rf"{re.escape(value.split('#')[0])}(?::\d+)? = .*|$", ROWS[name]["shardys"])[0]:
            continue
        called = name_of(function, value)
        why = trace.explain(called, 0) if trace.shape(called) else None
        assert trace.find(called) == called and (why is None or why.value == called)
        said = str(trace.sharding(called)) if trace.sharding(called) else None
        inline = closed(said and said.replace(str(trace.sharding(called).mesh), "@mesh"))
        assert inline == closed("#sdy.sharding" + sharding) or '"' not in closed("#sdy.sharding" + sharding).split("[", 1)[1] and inline is None, called


@programs
def test_steps_lead_from_the_value_to_where_its_axes_were_written(name, results):
    trace = results[name].trace
    for function, value, sharding in said_by(ROWS[name]["shardys"]):
        called = name_of(function, value)
        try:
            shape = trace.shape(called)
        except xlac.Error as error:
            assert "made after propagation" in str(error)
            continue
        for dim in range(len(shape)):
            why = trace.explain(called, dim)
            reached = {called}
            for step in why.steps:
                assert step.to in reached and step.to in str(why)
                reached.add(step.source)
            axes = [a.name for a in trace.sharding(called).dims[dim].axes] if trace.sharding(called) else []
            assert bool(axes) == bool(why.steps or any(axis in axes for axis, _ in why.origins)), (called, dim, str(why))
            assert {s.axis.split(":")[0] for s in why.steps if s.to == called and s.dim == dim} <= set(axes)


@programs
def test_a_line_names_the_results_of_its_op(name, results):
    trace, lines = results[name].trace, ROWS[name]["input"].splitlines()
    for number, line in enumerate(lines, 1):
        op = re.match(r"    (%\w+) = (?:\"?)([\w.]+)", line)
        if not op:
            continue
        try:
            why = trace.values[trace._place(f"line {number}")]
        except xlac.Error as error:  # functions of calls that are sharded otherwise are copied
            assert name in ("nested", "twice") and "2 values of the propagated program" in str(error)
            continue
        opcode = {"call": "sdy.named_computation", "stablehlo.constant": "sdy.constant"}.get(op[2], op[2])
        assert (why["line"], why["opcode"]) == (number, opcode)


@programs
def test_pictures_remedies_and_suspicions(name, results):
    result = results[name]
    root = xml.fromstring(result.to_svg())
    words = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    text = result.trace.partitioned.to_text()
    for line in text.splitlines():
        op = re.match(r" +(%\w+) = (?:\"?)(?:stablehlo\.)?([\w.]+)", line)
        assert not op or any(w.startswith(f"{op[1]} = {op[2].replace('call', 'func.call') if op[2] == 'call' else op[2]}") for w in words), line
    for function in re.findall(r'func\.func private @"?([^"(]+)"?\(', text):
        assert f"@{function}" in words
    assert all(str(s) for s in result.trace.suspicions)


@pytest.mark.parametrize("name", ["relu", "where", "silu", "tril", "transformer", "constrained", "shard_map"])
def test_remedies_do_what_they_say(name, results):
    trace = results[name].trace
    for remedy in trace.remedies[:5]:
        gone, new = trace.what_if({remedy.value: remedy.sharding and "#sdy.sharding" + remedy.sharding})
        assert set(remedy.new) == set(new) and remedy.saves == sum(r.bytes for r in gone) - sum(r.bytes for r in new)


def test_names_that_functions_share(results):
    """`%0` is main's; `%arg2` is only in @_where where main has two arguments; what nobody has is an error with suggestions."""
    trace = results["where"].trace
    assert trace.find("%0") == "%0" and trace.find("%arg2") == "@_where/%arg2"
    assert trace.explain("@_where/%0", 0).value == "@_where/%0" if trace.shape("@_where/%0") else True
    with pytest.raises(xlac.Error, match="no value '%77'"):
        trace.find("%77")
    with pytest.raises(xlac.Error, match="near it are @_where"):
        trace.find("@_wher/%0")
    with pytest.raises(xlac.Error, match="has no dimension 2"):
        trace.explain("%0", 2)


def test_the_command_line_with_private_functions(tmp_path, capsys):
    for name in ("relu", "transformer", "tril"):
        path = tmp_path / "m.mlir"
        path.write_text(ROWS[name]["input"])
        assert not cli.main(["shard", str(path), "--svg", str(tmp_path / "m.svg"), "--warnings", "--reshards"])
        assert cli.main(["shard", str(path), "--explain", "%nobody:0"]) == 1
        assert "no value '%nobody'" in capsys.readouterr().err
    path.write_text(ROWS["relu"]["input"])
    assert not cli.main(["shard", str(path), "--explain", "@relu/%arg0:0", "--remedies"])
    assert capsys.readouterr().out.startswith("@relu/%arg0:0 (argument, line ")
