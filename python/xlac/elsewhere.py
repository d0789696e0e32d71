"""Attributes that JAX, XLA and other libraries have, and what has the same here: for the errors about those that are not there."""
EXECUTABLE = {
    "as_text": "module.to_text()", "to_text": "module.to_text()", "hlo_modules": "module", "runtime_executable": "module",
    "get_hlo_text": "module.to_text()",
    "cost_analysis": "cost", "memory_analysis": "memory",
    "get_compiled_memory_stats": "memory", "in_tree": "inputs", "in_avals": "inputs",
    "args_info": "inputs", "input_shardings": "inputs", "out_tree": "outputs", "out_avals": "outputs", "out_info": "outputs",
    "output_shardings": "outputs", "parameters": "inputs", "results": "outputs", "save": "serialize(), whose bytes xlac.load takes",
    "dump": "serialize()",
    "to_bytes": "serialize()", "lower": "the executable itself, which is compiled already: call it with arrays",
    "execute": "the executable itself: call it with arrays", "run": "the executable itself: call it with arrays",
    "explore": "xlac.explore(executable)", "why": "explain(topic)",
}
MODULE = {
    "as_text": "to_text()", "text": "to_text()", "to_string": "to_text()", "as_hlo_text": "to_text()", "print": "print(module.to_text())",
    "dump": "to_text() or to_bytes()", "save": "to_text() or to_bytes(), and write what they give", "serialize": "to_bytes()",
    "as_serialized_hlo_module_proto": "to_bytes()", "SerializeToString": "to_bytes()", "entry_computation": "entry", "main": "entry", "body": "entry",
    "functions": "computations", "instructions": "walk() for all, or entry.instructions", "ops": "walk() for all, or entry.instructions",
    "parameters": "entry.parameters", "root": "entry.root", "inputs": "entry.parameters", "compile": "xlac.compile(module)",
    "execute": "xlac.compile(module)(*arrays)", "interpret": "xlac.interpret(module, *arrays)", "optimize": "run(passes)", "operation": "walk()",
    "to_mlir": "to_stablehlo()", "cost_analysis": "xlac.compile(module).cost", "explore": "xlac.explore(module)", "copy": "clone()",
}
COMPUTATION = {
    "ops": "instructions", "operations": "instructions", "root_instruction": "root", "args": "parameters", "arguments": "parameters",
    "inputs": "parameters",
    "num_parameters": "len(computation.parameters)", "as_text": "to_text()", "parent": "module",
}
TABLES = {"Executable": EXECUTABLE, "Module": MODULE, "Computation": COMPUTATION}


def hint(thing, name):
    """What an AttributeError about `name` says besides; "" for nothing. What is misspelt Python's tracebacks find themselves."""
    kind = type(thing).__name__
    here = TABLES.get(kind, {}).get(name)
    return f": use {here}" if here else ""
