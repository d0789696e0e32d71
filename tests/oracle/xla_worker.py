"""real_xla.run in a process of its own: XLA aborts on some modules, which must not end the tests."""
import os
import pickle
import select
import subprocess
import sys


class XlaFailed(Exception):
    """XLA refused the module, or died of it."""


class Worker:
    PATIENCE = 300  # seconds; some modules make XLA wait forever

    def __init__(self):
        self.process = None

    def run(self, text, *args):
        if self.process is None or self.process.poll() is not None:
            env = dict(os.environ, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
            self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        try:
            pickle.dump((text, args), self.process.stdin)
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], self.PATIENCE)[0]:
                self.process.kill()
            ok, answer = pickle.load(self.process.stdout)
        except (EOFError, BrokenPipeError):
            raise XlaFailed(f"XLA died, exit {self.process.wait()}") from None
        if not ok:
            raise XlaFailed(answer)
        return answer

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait()


def _main():
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what XLA prints is not an answer
    import ml_dtypes  # noqa: F401  (its types are in the arguments)
    import real_xla
    while True:
        try:
            text, args = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = True, real_xla.run(text, *args)
        except Exception as e:  # XLA's errors come as several types
            answer = False, str(e)
        pickle.dump(answer, out)
        out.flush()


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    _main()
