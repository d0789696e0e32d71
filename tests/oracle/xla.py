"""Real XLA, asked in a process of its own, since some texts abort it.

parse(text) reads and prints a module; verify(text) runs XLA's verifier on exactly that module. Both give (status, value):
"ok" and XLA's text, "error" and its message, or "crash" and the last line of its log. XLA loops for ever on a few broken
modules (its constant folding runs a while that never ends), so a worker that is silent for PATIENCE seconds counts as crashed.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

PATIENCE = 20


class Xla:
    """One worker, started on first use and again after a crash."""

    def __init__(self):
        self.process = None

    def parse(self, text):
        return self._ask("parse", text)

    def verify(self, text):
        return self._ask("verify", text)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait()

    def _ask(self, what, text):
        if self.process is None or self.process.poll() is not None:
            self.log = tempfile.TemporaryFile("w+")
            env = dict(os.environ, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
            self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=self.log, text=True, env=env)
        impatience = threading.Timer(PATIENCE, self.process.kill)
        impatience.start()
        try:
            self.process.stdin.write(json.dumps([what, text]) + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                if line.startswith("@@"):
                    return tuple(json.loads(line[2:]))
        except (BrokenPipeError, OSError):
            pass
        finally:
            impatience.cancel()
        code = self.process.wait()
        self.log.seek(0)
        lines = [l for l in self.log.read().split("\n") if "Check failed" in l or re.match(r"F\d{4} ", l)]
        return "crash", f"exit {code}: {lines[-1] if lines else ''}"


# --- the worker ---


class _Verifier:
    """Compiles a outer of the module's signature and swaps the module in before XLA verifies and schedules it."""

    STAGE_BEFORE_SCHEDULING = 0
    MARKS = ("hlo verifier", "hlo_verifier.cc", "[Unknown]", "hlo_module.cc", "hlo_computation.cc", "hlo_instruction")

    def __init__(self, hlo, jax_c):
        import jax
        import jaxlib._xla as xla
        self.hlo, self.jax_c, self.injected = hlo, jax_c, None
        self.device = jax.devices("cpu")[0]
        xla.register_xla_transform("xlac_tests", self.STAGE_BEFORE_SCHEDULING, lambda proto: self._take())

    def _take(self):
        proto, self.injected = self.injected, None
        return proto

    def _outer(self, module):
        head = re.sub(r"/\*[^*]*\*/", "", module.to_string(self.hlo.HloPrintOptions()).split("\n", 1)[0])
        start = head.index("entry_computation_layout={") + len("entry_computation_layout={")
        depth, end = 1, start
        while depth:
            depth += {"{": 1, "}": -1}.get(head[end], 0)
            end += 1
        params, result = _split_signature(head[start:end - 1])
        lines = ["HloModule outer", "ENTRY e {"] + [f"  p{i} = {t} parameter({i})" for i, t in enumerate(params)]
        args = ", ".join(f"p{i}" for i in range(len(params)))
        lines += [f'  ROOT r = {result} custom-call({args}), custom_call_target="outer", custom_call_has_side_effect=true', "}"]
        return "\n".join(lines)

    def __call__(self, text):
        module = self.hlo.hlo_module_from_text(text)
        self.injected = None
        outer = self.hlo.hlo_module_from_text(self._outer(module)).as_serialized_hlo_module_proto()
        mlir = self.jax_c.mlir.xla_computation_to_mlir_module(self.hlo.XlaComputation(outer))
        self.injected = module.as_serialized_hlo_module_proto()
        try:
            self.device.client.compile_and_load(mlir, self.jax_c.DeviceList((self.device,)), self.jax_c.CompileOptions())
        except Exception as e:  # XLA's errors come as several types
            if self.injected is not None:
                return "error", "not injected: " + str(e)
            if any(m in str(e) for m in self.MARKS):
                return "error", str(e)
        return "ok", ""


def _split_signature(signature):
    depth, params, current = 0, [], ""
    for i, c in enumerate(signature):
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(c, 0)
        if depth == 0:
            break
        if depth == 1 and c == ",":
            params.append(current)
            current = ""
        elif i > 0:
            current += c
    return [p.strip() for p in params + [current] if p.strip()], signature[i + 3:].strip()


def _main():
    import jaxlib._hlo as hlo
    import jaxlib._jax as jax_c
    verifier = None
    options = hlo.HloPrintOptions()
    options.print_large_constants = True
    for line in sys.stdin:
        what, text = json.loads(line)
        try:
            if what == "parse":
                answer = "ok", hlo.hlo_module_from_text(text).to_string(options)
            else:
                verifier = verifier or _Verifier(hlo, jax_c)
                answer = verifier(text)
        except Exception as e:
            answer = "error", str(e)
        print("@@" + json.dumps(answer), flush=True)


if __name__ == "__main__":
    _main()
