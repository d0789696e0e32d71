"""JAX on xlac: `JAX_PLATFORMS=xlac python train.py`; and why a JAX function runs as it does, by its Python lines. See docs/jax.md.

    import xlac.jax
    print(xlac.jax.explain(step)(params, batch))         # what each line became, and what that costs
    print(xlac.jax.profile(step, repeat=20)(params, batch))
    print(xlac.jax.memory(step)(params, batch))
    print(xlac.jax.donation(step)(params, batch))
    step = xlac.jax.why_recompiled(step); ...; print(step.report())
    with xlac.jax.compile_times() as times: ...
    print(times)

The backend may be any: these compile the function with xlac beside it. Nothing of JAX is imported before it is needed.
"""
_HOME = {"explain": "explaining", "profile": "explaining", "memory": "explaining", "donation": "explaining", "Lines": "explaining",
         "why_recompiled": "recompiling", "compile_times": "recompiling"}
__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__():
    return sorted([*globals(), *__all__])
