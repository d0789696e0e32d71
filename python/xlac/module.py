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
