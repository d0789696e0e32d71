"""Methods of Module that are easier said in Python."""
from . import _core


def walk(module):
    """Every instruction, computation by computation, callees first."""
    seen, order = set(), []

    def visit(computation):
        stack = [(computation, iter(list(computation)))]
        seen.add(computation.name)
        while stack:
            here, rest = stack[-1]
            for op in rest:
                fresh = [c for c in op.called if c.name not in seen]
                if fresh:
                    seen.add(fresh[0].name)
                    stack.append((fresh[0], iter(list(fresh[0]))))
                    break
            else:
                order.append(here)
                stack.pop()

    for computation in module.computations:
        if computation.name not in seen:
            visit(computation)
    for computation in order:
        yield from computation


def run(module, pipeline, *, after=None, verify_each=False):
    """Runs the passes of a pipeline such as "dce,cse{...}" on a copy, and returns the copy. `after(name, module)` is called
    after each pass with the state it left."""
    return _core.run_pipeline(module, pipeline, after=after, verify_each=verify_each)


def add(computation, opcode, *operands, type=None, name=None, **attributes):
    """Appends an op to a computation. Attributes are keyword arguments, written as text or as Python values; `type` is the
    result's, as text, and inferred when it is left out."""
    from .attributes import name_of, to_text

    keys = [(name_of(keyword), value) for keyword, value in attributes.items() if value is not None]
    texts = [(key, to_text(key, value)) for key, value in keys]
    return computation._create(getattr(opcode, "value", opcode), list(operands), texts, type, name)
