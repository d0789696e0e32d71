"""GraphDefs as text, written down in a line a node."""

TYPES = {"f": "DT_FLOAT", "i": "DT_INT32", "b": "DT_BOOL", "s": "DT_STRING", "r": "DT_RESOURCE", "v": "DT_VARIANT", "l": "DT_INT64"}


def attr(key, value):
    if isinstance(value, bool):
        text = f"b: {str(value).lower()}"
    elif isinstance(value, int):
        text = f"i: {value}"
    elif isinstance(value, dict):
        text = " ".join(f"{k} {v}" for k, v in value.items())
    elif value.startswith("DT_"):
        text = f"type: {value}"
    else:
        text = f's: "{value}"'
    return f'attr {{ key: "{key}" value {{ {text} }} }}'


def node(name, op, *inputs, device=None, **attrs):
    lines = [f'name: "{name}" op: "{op}"', *(f'input: "{i}"' for i in inputs)]
    if device:
        lines.append(f'device: "/job:localhost/replica:0/task:0/device:{device}"')
    return "node { " + " ".join(lines + [attr(k, v) for k, v in attrs.items()]) + " }\n"


def function(name, inputs, outputs, *nodes, rets, **attrs):
    """inputs and outputs: {argument: type}; nodes as node() gives them; rets: {output: "node:argument:0"}."""
    def args(kind, names):
        return " ".join(f'{kind} {{ name: "{n}" type: {t} }}' for n, t in names.items())
    body = "".join(n.replace("node {", "node_def {", 1) for n in nodes)
    ret = " ".join(f'ret {{ key: "{k}" value: "{v}" }}' for k, v in rets.items())
    return (f'library {{ function {{ signature {{ name: "{name}" {args("input_arg", inputs)} {args("output_arg", outputs)} }} {body} '
            f"{ret} {' '.join(attr(k, v) for k, v in attrs.items())} }} }}\n")


def placeholder(name, type="DT_FLOAT", **more):
    return node(name, "Placeholder", dtype=type, **more)


def const(name, type="DT_FLOAT", *control, value="float_val: 1", shape=""):
    return node(name, "Const", *control, dtype=type, value={"tensor": f"{{ dtype: {type} tensor_shape {{ {shape} }} {value} }}"})


def unary(name, x, op="Relu", type="DT_FLOAT", **more):
    return node(name, op, x, T=type, **more)


def add(name, x, y, **more):
    return node(name, "AddV2", x, y, T="DT_FLOAT", **more)


def chain(n, **more):
    return placeholder("x") + "".join(unary(f"r{i}", f"r{i - 1}" if i else "x", **more) for i in range(n))


def variable(name):
    return node(name, "VarHandleOp", dtype="DT_FLOAT", shape={"shape": "{ }"})


def read(name, var, *control):
    return node(name, "ReadVariableOp", var, *control, dtype="DT_FLOAT")


def assign(name, var, value, *control):
    return node(name, "AssignVariableOp", var, value, *control, dtype="DT_FLOAT")
