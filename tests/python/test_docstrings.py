"""Docstrings of public functions: a sentence, and in NumPy's style each parameter, what comes back, what is raised."""
import inspect
import re

import pytest

import xlac

FUNCTIONS = [name for name in xlac.__all__ if inspect.isfunction(getattr(xlac, name))]


def sections(doc):
    """{title: its text}, the beginning under ""."""
    parts = re.split(r"^(\w+)\n-+\n", doc, flags=re.M)
    return dict(zip(["", *parts[1::2]], parts[0::2]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_described(name):
    function = getattr(xlac, name)
    found = sections(inspect.getdoc(function))
    assert re.match(r"[A-Z].*\.", found[""], re.S), "begins with a sentence"
    described = {word.strip().lstrip("*") for line in re.findall(r"^(\S[^:\n]*)(?: :.*)?$", found.get("Parameters", ""), re.M) for word in line.split(",")}
    assert described == set(inspect.signature(function).parameters), name
    assert "Returns" in found or name in ("set_memory_limit", "register_custom_call")
    for title in re.findall(r"^(\w+(?:, \w+)*)$", found.get("Raises", ""), re.M):
        for error in title.split(", "):
            assert isinstance(getattr(xlac, error, None) or getattr(__builtins__, error, None) or __builtins__[error], type), error


def test_there_are_functions():
    assert len(FUNCTIONS) >= 17


METHODS = [(kind, name) for kind in (xlac.Module, xlac.Computation, xlac.Instruction, xlac.Executable, xlac.Buffer) for name in dir(kind)
           if not name.startswith("_") and callable(getattr(kind, name))]


@pytest.mark.parametrize("kind, name", METHODS, ids=lambda thing: getattr(thing, "__name__", thing))
def test_methods_have_a_signature_and_a_sentence(kind, name):
    method = getattr(kind, name)
    assert "self" in inspect.signature(method).parameters
    assert re.match(r"[A-Z0-9'].*", inspect.getdoc(method))


@pytest.mark.parametrize("name", ["asarray", "donate", "from_dlpack", "stats", "reset_stats"])
def test_functions_of_the_core_do_too(name):
    function = getattr(xlac, name)
    described = re.findall(r"^(\w+) : ", sections(inspect.getdoc(function)).get("Parameters", ""), re.M)
    assert described == list(inspect.signature(function).parameters)
