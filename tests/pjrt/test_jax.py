"""An unchanged JAX on the plugin: scripts in processes of their own, since a process has its platforms for good."""
import shutil
import subprocess

import pytest
from jax_script import run

pytest.importorskip("jax")


def test_a_jitted_function_runs_on_xlac():
    out = run("""
        import jax, jax.numpy as jnp
        x = jax.jit(lambda x: x * 2)(jnp.arange(4.))
        print(x, x.device, jax.devices("cpu")[0].client.platform_version != jax.devices()[0].client.platform_version)
    """)
    assert out == ["[0. 2. 4. 6.] XlacDevice(id=0) True"]


def test_without_being_asked_for_xlac_is_not_the_default():
    out = run("""
        import jax
        print("Xlac" in repr(jax.devices()[0]), jax.devices("xlac"))
    """, JAX_PLATFORMS="")
    assert out == ["False [XlacDevice(id=0)]"]


def test_it_takes_the_place_of_the_cpu():
    out = run("""
        import jax, numpy as np, jax.numpy as jnp
        print(jax.devices("cpu"), jax.default_backend())
        print(np.from_dlpack(jnp.arange(3)), jax.dlpack.from_dlpack(np.arange(100000.)).unsafe_buffer_pointer() > 0)
    """, JAX_PLATFORMS="cpu", XLAC_JAX_AS_CPU="1", JAX_NUM_CPU_DEVICES="2")
    assert out == ["[XlacDevice(id=0), XlacDevice(id=1)] cpu", "[0 1 2] True"]


def test_python_callbacks_run_and_their_errors_arrive():
    out = run("""
        import jax, jax.numpy as jnp, numpy as np
        from functools import partial
        print(jax.jit(lambda x: jax.pure_callback(np.sin, x, x))(jnp.float32(.5)))
        seen = []
        @jax.jit
        def f(x):
            jax.debug.print("x is {}", x, ordered=True)
            jax.experimental.io_callback(lambda v: seen.append(float(v)), None, x + 1, ordered=True)
            return x * 2
        a, b = f(3.), f(4.)
        jax.effects_barrier()
        print(a, b)
        print(seen)
        def wrong(x):
            raise ValueError("this one is odd")
        try:
            jax.jit(lambda x: jax.pure_callback(wrong, x, x))(1.).block_until_ready()
        except Exception as e:
            print(type(e).__name__, "this one is odd" in str(e))
        def even(n, x):
            return odd(n - 1, x)
        def odd(n, x):
            return even(n - 1, x) if n > 1 else wrong(x)
        try:
            jax.jit(lambda x: jax.pure_callback(lambda v: even(24, v), x, x))(1.).block_until_ready()
        except Exception as e:  # all of Python's traceback, of the callback alone
            text = str(e)
            print(text.startswith("INTERNAL: CpuCallback error calling callback: Traceback"), text.endswith("ValueError: this one is odd"),
                  text.count("in even") + text.count("in odd") == 24, "xlac/jax/callbacks.py" in text)
        def long(x):
            raise ValueError("begin " + "x" * 20000 + " end")
        try:
            jax.jit(lambda x: jax.pure_callback(long, x, x))(1.).block_until_ready()
        except Exception as e:  # of what is very long, the ends
            print("ValueError: begin x" in str(e), str(e).endswith("x end"))
        print(jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(jnp.cos(v) * 2), x, x))(jnp.float32(0)))
    """)
    assert out == ["0.47942555", "x is 3.0", "x is 4.0", "6.0 8.0", "[4.0, 5.0]", "JaxRuntimeError True", "True True True False", "True True", "2.0"]


def test_callbacks_on_buffers_write_their_results_themselves():
    out = run("""
        import jax, jax.numpy as jnp, numpy as np
        from jax.experimental.buffer_callback import buffer_callback, ExecutionStage
        def add(ctx, out, x, *, y):
            assert ctx.stage == ExecutionStage.EXECUTE and out.writeable and not x.writeable
            np.asarray(out)[...] = np.asarray(x) + np.from_dlpack(y)
        f = jax.jit(lambda x, y: buffer_callback(add, jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y=y) * 2)
        print(f(jnp.arange(3.), jnp.ones(3)))
        def wrong(ctx, out, x):
            np.asarray(x)[...] = 0
        try:
            jax.block_until_ready(jax.jit(buffer_callback(wrong, jax.ShapeDtypeStruct((3,), jnp.float32)))(jnp.arange(3.)))
        except Exception as e:
            print(type(e).__name__, "read-only" in str(e))
        print(sorted(jax.jit(jnp.sin).lower(jnp.ones(8)).compile().cost_analysis().items()))
    """)
    assert out == ["[2. 4. 6.]", "JaxRuntimeError True", "[('bytes accessed', 64.0), ('flops', 0.0), ('transcendentals', 8.0)]"]


def test_what_jax_keeps_by_a_sink_is_computed_and_dropped():
    out = run("""
        import jax, jax.numpy as jnp
        def f(x):  # as jax.lax.dce_sink(jnp.sin(x), prevent_mlir_dce=True) in newer ones
            jax.ffi.ffi_call("dce_sink", (), has_side_effect=True)(jnp.sin(x))
            return x + 1
        text = jax.jit(f).lower(1.).compile().as_text()
        print(jax.jit(f)(1.), "dce_sink" in text, "sine(" in text)
    """)
    assert out == ["2.0 True True"]


def test_donated_arrays_are_deleted_and_numpy_keeps_its_view():
    out = run("""
        import jax, jax.numpy as jnp, numpy as np
        f = jax.jit(lambda x: x + 1, donate_argnums=0)
        x = jnp.ones(100000)
        where = x.unsafe_buffer_pointer()
        y = f(x)
        print(x.is_deleted(), y.unsafe_buffer_pointer() == where)
        view = np.asarray(y)
        z = f(y)
        print(view.max(), z.max())
        try:
            f(x)
        except (RuntimeError, ValueError) as e:
            print("deleted" in str(e))
    """)
    assert out == ["True True", "2.0 3.0", "True"]


def test_compiled_programs_are_kept_on_disk(tmp_path):
    script = """
        import jax, jax.numpy as jnp
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
        hits = []
        jax.monitoring.register_event_listener(lambda name, **kw: hits.append(name) if name.endswith("cache_hits") else None)
        print(jax.jit(lambda x: jnp.tanh(x @ x.T).sum())(jnp.ones((3, 4))), len(hits) > 0)
    """
    first, second = (run(script, JAX_COMPILATION_CACHE_DIR=str(tmp_path))[0].split() for _ in range(2))
    assert first[0] == second[0] and (first[1], second[1]) == ("False", "True")


def test_compiled_programs_tell_their_text_memory_and_options():
    out = run("""
        import jax, jax.numpy as jnp
        lowered = jax.jit(lambda x: jnp.exp(x) + 1).lower(jnp.ones(1000))
        compiled = lowered.compile(compiler_options={"xlac_numerics": "fast"})
        print("exponential" in compiled.as_text(), compiled.memory_analysis().argument_size_in_bytes)
        for name in ("no_such", "xla_no_such", "xla_cpu_enable_fast_mat", "xla_cpu_enable_xprof_traceme cpu_experimental_enable_tiling_propagation", "xlac_thread"):
            try:
                lowered.compile(compiler_options={name: "1"})
            except jax.errors.JaxRuntimeError as e:
                print(f"No such compile option: '{name}'" in str(e))
        others = {"xla_cpu_enable_fast_math": True, "xla_dump_to": "/nowhere", "xla_gpu_autotune_level": 0, "xla_tpu_enable_latency_hiding_scheduler": "true",
                  "xla_backend_optimization_level": 1, "xla_unsupported_crash_on_hlo_pass_silent_hlo_change": False, "xla_dump_compact_gte": True}
        print(lowered.compile(compiler_options=others)(jnp.zeros(1000))[0])
    """)
    assert out == ["True 4000"] + ["True"] * 5 + ["2.0"]


HANDLER = r"""
#include <string.h>
#include "xla/ffi/api/c_api.h"
static XLA_FFI_Error *fail(XLA_FFI_CallFrame *f, const char *text) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL, text, XLA_FFI_Error_Code_INVALID_ARGUMENT};
  return f->api->XLA_FFI_Error_Create(&args);
}
/* attributes, sorted: add (i64 array), factor (f32), what (text) */
XLA_FFI_Error *scale(XLA_FFI_CallFrame *f) {
  if (f->extension_start && f->extension_start->type == XLA_FFI_Extension_Metadata) { /* XLA asks when it is registered */
    XLA_FFI_Metadata *m = ((XLA_FFI_Metadata_Extension *)f->extension_start)->metadata;
    m->api_version.major_version = XLA_FFI_API_MAJOR;
    m->api_version.minor_version = XLA_FFI_API_MINOR;
    return NULL;
  }
  if (f->stage != XLA_FFI_ExecutionStage_EXECUTE || f->args.size != 1 || f->rets.size != 1 || f->attrs.size != 3) return fail(f, "a strange frame");
  const char *names[] = {"add", "factor", "what"};
  for (int i = 0; i < 3; i++)
    if (f->attrs.names[i]->len != strlen(names[i]) || memcmp(f->attrs.names[i]->ptr, names[i], strlen(names[i]))) return fail(f, "strange names");
  XLA_FFI_Array *add = f->attrs.attrs[0];
  XLA_FFI_Scalar *factor = f->attrs.attrs[1];
  XLA_FFI_ByteSpan *what = f->attrs.attrs[2];
  if (add->dtype != XLA_FFI_DataType_S64 || factor->dtype != XLA_FFI_DataType_F32) return fail(f, add->dtype == XLA_FFI_DataType_S64 ? "strange factor" : "strange add");
  if (what->len != 2) return fail(f, "what is not go");
  XLA_FFI_Buffer *x = f->args.args[0], *y = f->rets.rets[0];
  for (int64_t i = 0; i < x->dims[0]; i++)
    ((float *)y->data)[i] = ((float *)x->data)[i] * *(float *)factor->value + ((int64_t *)add->data)[add->size - 1];
  return NULL;
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
@pytest.mark.parametrize("environment", [{}, {"JAX_PLATFORMS": "cpu", "XLAC_JAX_AS_CPU": "1"}])
def test_handlers_made_for_xla_are_called(tmp_path, environment):
    import jaxlib
    (tmp_path / "scale.c").write_text(HANDLER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "scale.so", tmp_path / "scale.c", f"-I{jaxlib.__path__[0]}/include"], check=True)
    out = run(f"""
        import ctypes, jax, jax.numpy as jnp, numpy as np
        jax.ffi.register_ffi_target("scale", jax.ffi.pycapsule(ctypes.CDLL("{tmp_path}/scale.so").scale), platform="cpu")
        @jax.jit
        def f(x):
            return jax.ffi.ffi_call("scale", jax.ShapeDtypeStruct(x.shape, x.dtype))(x, factor=np.float32(2.5), add=np.array([1, 7]), what="go")
        y = f(jnp.arange(3.))
        print(y, y.device)
        try:
            jax.ffi.ffi_call("scale", jax.ShapeDtypeStruct((1,), "float32"))(jnp.ones(1), factor=np.float32(1), add=np.array([1]), what="stop").block_until_ready()
        except jax.errors.JaxRuntimeError as e:
            print("what is not go" in str(e) or e)
    """, **environment)
    assert out == ["[ 7.   9.5 12. ] XlacDevice(id=0)", "True"]
