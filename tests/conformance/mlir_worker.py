"""MLIR's own parser and verifier in a process of its own: some inputs abort it. Lines of JSON: a text in, null or the first
diagnostic [line, message] out."""
import json
import subprocess
import sys


class Verifier:
    def __init__(self):
        self.process = None

    def refusal(self, text):
        """None when MLIR accepts the text, else (line, message); line 0 is unknown. NotImplementedError when it dies of it."""
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.process.wait()
            self.process = None
            raise NotImplementedError("MLIR died")
        answer = json.loads(answer)
        return answer and tuple(answer)

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


def _context():
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, stablehlo
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    chlo.register_dialect(context)
    context.enable_multithreading(False)
    return context


def _refusal(ir, context, text):
    try:
        with context:
            ir.Module.parse(text)
    except ir.MLIRError as e:
        first = e.error_diagnostics[0] if e.error_diagnostics else None
        place = str(first.location).split(":") if first else []
        return [int(place[1]) if len(place) == 3 else 0, first.message if first else str(e)]
    return None


def _main():
    from jaxlib.mlir import ir
    context = _context()
    for line in sys.stdin:
        print(json.dumps(_refusal(ir, context, json.loads(line))), flush=True)


if __name__ == "__main__":
    _main()
