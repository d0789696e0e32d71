"""Methods of Module that are easier said in Python."""
from . import _core


def walk(module):
    """Every instruction, computation by computation, callees first."""
    done, order = set(), []
    for computation in module.computations:
        stack = [(computation, False)]
        while stack:
            here, callees_done = stack.pop()
            if here in done:
                continue
            if callees_done:
                done.add(here)
                order.append(here)
                continue
            stack.append((here, True))
            called = [c for op in here for c in op.called]
            stack.extend((c, False) for c in reversed(called) if c not in done)
    for computation in order:
        yield from computation


def run(module, pipeline, *, after=None, verify_each=False, in_place=False):
    """Runs the passes of a pipeline such as "dce,cse{...}", or of a list of them, on a copy, and returns the copy. `after(name, module)` is called
    after each pass with the state it left. With `in_place` there is no copy, which takes half the memory: the module itself
    is changed and returned, ops that passes take out of it are no longer part of it, and a pass that fails leaves it valid
    but maybe changed."""
    if isinstance(pipeline, (list, tuple)) and all(isinstance(name, str) for name in pipeline):
        pipeline = ",".join(pipeline)
    if not isinstance(pipeline, str):
        raise TypeError(f'a pipeline is text such as "cse,dce", or a list of passes; found {type(pipeline).__name__}')
    return _core.run_pipeline(module, pipeline, after=after, verify_each=verify_each, in_place=in_place)


def add(computation, opcode, *operands, type=None, name=None, **attributes):
    """Appends an op to a computation. Attributes are keyword arguments, written as text or as Python values; `type` is the
    result's, as text, and inferred when it is left out."""
    from .attributes import made, name_of, to_text

    opcode = getattr(opcode, "value", opcode)
    keys = [(name_of(keyword, opcode), value) for keyword, value in attributes.items() if value is not None]
    texts = [(key, to_text(key, value)) for key, value in keys]
    return made(computation, opcode, list(operands), texts, type, name)


def explain(module, topic="async", **options):
    """What can be said of a program before it runs: "async", its chains of async ops, what each of them hides and what is waited
    for, by a model of time with the keyword arguments gigaflops, memory_gigabytes and link_gigabytes (docs/async.md)."""
    from .codes import Code
    from .errors import ArgumentError

    if topic == "async":
        from .async_report import explain as explain_async

        return explain_async(module, **options)
    raise ArgumentError(f"explain knows no {topic!r}", Code.BAD_ARGUMENT, hint="the topic of modules is async; executables have others")
