"""xlac.lower_graph: what it gives, what it says where it can't, and graphs that are malformed."""
import numpy as np
import pytest
import xlac

FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'


def placeholder(name, dtype="DT_FLOAT"):
    return f'node {{ name: "{name}" op: "Placeholder" attr {{ key: "dtype" value {{ type: {dtype} }} }} }}'


def node(name, op, *inputs, attrs=FLOAT):
    return f'node {{ name: "{name}" op: "{op}" {" ".join(f"input: {chr(34)}{i}{chr(34)}" for i in inputs)} {attrs} }}'


def ints(name, values):
    return (f'node {{ name: "{name}" op: "Const" attr {{ key: "dtype" value {{ type: DT_INT32 }} }} attr {{ key: "value" value {{ tensor {{ '
            f'dtype: DT_INT32 tensor_shape {{ dim {{ size: {len(values)} }} }} {" ".join(f"int_val: {v}" for v in values)} }} }} }} }}')


def both(*types):
    return " ".join(f'attr {{ key: "{key}" value {{ type: {value} }} }}' for key, value in types)


def refused(graph, inputs, fetches, **more):
    with pytest.raises(xlac.Error) as caught:
        xlac.lower_graph("\n".join(graph), inputs, fetches, **more)
    return caught.value


def test_a_module_to_look_at():
    graph = "\n".join((placeholder("x"), placeholder("unused"), node("y", "Relu", "x"), node("z", "AddV2", "y", "x")))
    low = xlac.lower_graph(graph, {"x": "f32[2,3]", "unused": "f32[9]"}, ["z", "y:0"])
    assert (low.parameters, low.results, low.updates) == (["x"], ["z", "y:0"], [])
    x = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
    z, y = xlac.interpret(low.module, x)
    assert np.array_equal(y, np.maximum(x, 0)) and np.array_equal(z, x + y)
    assert 'loc("y")' in low.module.to_text(locations=True)


def test_known_inputs_decide_shapes():
    attrs = both(("T", "DT_FLOAT"), ("Tshape", "DT_INT32"))
    graph = "\n".join((placeholder("x"), placeholder("s", "DT_INT32"), node("y", "Reshape", "x", "s", attrs=attrs)))
    low = xlac.lower_graph(graph, {"x": "f32[6]", "s": np.array([2, -1], np.int32)}, ["y", "s"])
    y, s = xlac.interpret(low.module, np.zeros(6, np.float32))
    assert low.parameters == ["x"] and y.shape == (2, 3) and s.tolist() == [2, -1]
    error = refused(graph.splitlines(), {"x": "f32[6]", "s": "s32[2]"}, ["y"])
    assert error.code == 702 and "node 'y'" in str(error) and "must be known" in str(error)


def test_an_input_may_be_a_fetch():
    low = xlac.lower_graph(placeholder("x"), {"x": "f32[2]"}, ["x", "x:0"])
    assert [r.tolist() for r in xlac.interpret(low.module, np.array([1, 2], np.float32))] == [[1, 2], [1, 2]]


VARIABLE = 'node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }'
DTYPE = 'attr { key: "dtype" value { type: DT_FLOAT } }'


def test_variables_without_a_value():
    graph = [VARIABLE, placeholder("x"), node("w", "AssignVariableOp", "v", "x", attrs=DTYPE), node("i", "VarIsInitializedOp", "v", attrs=""),
             node("r", "ReadVariableOp", "v", "^w", attrs=DTYPE), node("early", "ReadVariableOp", "v", attrs=DTYPE)]
    low = xlac.lower_graph("\n".join(graph[:3] + graph[4:5]), {"x": "f32[2]"}, ["r"], variables={"v": None})
    read, new = xlac.interpret(low.module, np.array([1, 2], np.float32))
    assert low.updates == ["v"] and read.tolist() == new.tolist() == [1, 2]
    low = xlac.lower_graph("\n".join(graph[:1] + graph[3:4]), {}, ["i"], variables={"v": None})
    assert not xlac.interpret(low.module)
    low = xlac.lower_graph("\n".join(graph[:1] + graph[3:4]), {}, ["i"], variables={"v": "f32[]"})
    assert xlac.interpret(low.module)
    assert "has no value yet" in str(refused([VARIABLE, graph[5]], {}, ["early"], variables={"v": None}))
    assert "not a tensor of numbers" in str(refused([VARIABLE], {}, ["v"], variables={"v": "f32[]"}))


@pytest.mark.parametrize("graph, inputs, fetches, code, says", [
    ([placeholder("x"), node("y", "Relu", "x")], {}, ["y"], 702, "node 'x'"),
    ([placeholder("x", "DT_STRING"), node("y", "StringLower", "x", attrs="")], {"x": "f32[]"}, ["y"], 702, "no lowering"),
    ([placeholder("x"), node("y", "Relu", "x")], {"x": "f32[2]"}, ["nobody"], 102, "nobody"),
    ([placeholder("x"), node("y", "Relu", "x")], {"x": "f32[2]"}, ["y:1"], 102, "y:1"),
    ([placeholder("x"), node("y", "Relu", "x")], {"y": "f32[2]"}, ["y"], 503, "takes inputs"),
    ([placeholder("x"), node("y", "MatMul", "x", "x")], {"x": "f32[2,3]"}, ["y"], 702, "3 columns and 2 rows"),
    ([placeholder("x"), node("y", "AddV2", "x", "z"), placeholder("z")], {"x": "f32[2]", "z": "f32[3]"}, ["y"], 702, "[2] and [3]"),
    ([placeholder("x"), ints("a", [5]), node("y", "Sum", "x", "a", attrs=both(("T", "DT_FLOAT"), ("Tidx", "DT_INT32")))], {"x": "f32[2]"},
     ["y"], 702, "axis 5 is out of range"),
    ([placeholder("x"), ints("a", [7]), node("y", "Reshape", "x", "a", attrs=both(("T", "DT_FLOAT"), ("Tshape", "DT_INT32")))],
     {"x": "f32[2]"}, ["y"], 702, "2 elements"),
    ([placeholder("x"), node("y", "Where", "x")], {"x": "f32[2]"}, ["y"], 702, "no lowering"),
])
def test_errors_name_the_node(graph, inputs, fetches, code, says):
    error = refused(graph, inputs, fetches)
    assert error.code == code and says in str(error)


def test_bad_arguments():
    with pytest.raises(ValueError, match="not a type"):
        xlac.lower_graph(placeholder("x"), {"x": "float"}, ["x"])
    with pytest.raises(ValueError, match="not an element type"):
        xlac.lower_graph(placeholder("x"), {"x": "q7[2]"}, ["x"])
    with pytest.raises(xlac.Error):
        xlac.lower_graph(b"\x0a\xff", {}, [])


FUNCTION = """library { function { signature { name: "f" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
  node_def { name: "g" op: "f" input: "a" } ret { key: "r" value: "g:r:0" } } }"""


def test_recursion_ends():
    error = refused([placeholder("x"), node("y", "f", "x", attrs=""), FUNCTION], {"x": "f32[2]"}, ["y"])
    assert "nested deeper than 50" in str(error) and "of function 'f'" in str(error)


def test_calls_that_multiply_end():
    """Each function calls the next one twice: 2^40 nodes in all."""
    library = "\n".join(f'function {{ signature {{ name: "f{i}" input_arg {{ name: "a" type: DT_FLOAT }} output_arg {{ name: "r" type: DT_FLOAT }} }}'
                        f' node_def {{ name: "g" op: "f{i + 1}" input: "a" }} node_def {{ name: "h" op: "f{i + 1}" input: "g:r:0" }}'
                        f' ret {{ key: "r" value: "h:r:0" }} }}' for i in range(40))
    last = ('function { signature { name: "f40" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }'
            ' ret { key: "r" value: "a" } }')
    graph = [placeholder("x"), node("y", "f0", "x", attrs=""), f"library {{ {library} {last} }}"]
    assert "nodes" in str(refused(graph, {"x": "f32[2]"}, ["y"]))


def test_a_scalar_is_counted_in_its_bin():
    size = ints("n", [4]).replace("dim { size: 1 }", "")
    graph = "\n".join((placeholder("x", "DT_INT32"), size, placeholder("w"), node("y", "Bincount", "x", "n", "w")))
    low = xlac.lower_graph(graph, {"x": "s32[]", "w": "f32[0]"}, ["y"])
    assert xlac.interpret(low.module, np.int32(2)).tolist() == [0, 0, 1, 0]
