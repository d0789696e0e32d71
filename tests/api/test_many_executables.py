"""Thousands of live executables, each with a runtime and so a pool of its own: a process has about a thousand thread-specific keys."""
from test_compiling import compiled

TEXT = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[2] negate(x) }"


def test_three_thousand_executables_live_at_once(x):
    options = x.options("xlac_compile_options", {"threads": 2})
    live = [compiled(x, TEXT, options) for _ in range(3000)]
    assert all(live) and len(set(live)) == 3000
    for exe in live:
        x.lib.xlac_executable_destroy(exe)
