"""The CUDA driver that simulates (tests/cuda/driver), by ctypes: what tests of the driver itself, and tests that look at its findings, use."""
import ctypes
import os
import pathlib
import shutil
import subprocess

import numpy
import pytest

HERE = pathlib.Path(__file__).resolve().parent


def compiler():
    given = os.environ.get("XLAC_CUDA_SIM_CXX")
    return given or next((c for c in ("g++", "clang++", "c++") if shutil.which(c)), None)


def library_path():
    """Builds it where it must be; the test is skipped where there is nothing to build it, or kernels, with."""
    if not compiler():
        pytest.skip("no C++ compiler (g++, clang++ or c++) to compile kernels for the host with")
    if not any(shutil.which(c) for c in (os.environ.get("CC", "cc"), "gcc", "clang")):
        pytest.skip("no C compiler to build the simulating driver with")
    made = subprocess.run([HERE / "driver" / "build"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


class Gpu:
    """In the place of the driver that simulates, on a machine's GPU: it finds nothing, and has nothing to tell."""

    def reports(self):
        return []

    def clear(self):
        pass

    def alive(self):
        return ""

    def seed(self, number):
        pass

    def fail(self, what):
        if what is not None:
            self.__getattr__("fail")

    def __getattr__(self, name):
        import pytest

        pytest.skip(f"the driver that simulates has {name}, a GPU has not")


def xlac_driver():
    """The driver, which device="cuda" of this process uses, too; with XLAC_CUDA_ON_GPU the machine's own, of which tests ask little."""
    if os.environ.get("XLAC_CUDA_ON_GPU"):
        return Gpu()
    os.environ["XLAC_CUDA_DRIVER"] = library_path()
    return Driver()


class CudaError(Exception):
    def __init__(self, call, code, text):
        super().__init__(f"{call}: {code} ({text})")
        self.code = code


class Driver:
    """Each entry point as a method that raises CudaError; arguments are numbers, bytes, or ctypes objects."""

    def __init__(self):
        self.library = ctypes.CDLL(library_path())
        self.library.cudasim_report.restype = ctypes.c_char_p
        self.library.cudasim_calls.restype = ctypes.c_long
        self.library.cudasim_count.restype = ctypes.c_long
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
        self.cuInit(0)
        self.context = self.out("cuDevicePrimaryCtxRetain", 0)
        self.cuCtxPushCurrent_v2(self.context)
        self.images = {}

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def call(*arguments):
            code = function(*[ctypes.c_uint64(a) if isinstance(a, int) else a for a in arguments])
            if code != 0:
                raise CudaError(name, code, self.text(code))

        self.__dict__[name] = call
        return call

    def text(self, code):
        text = ctypes.c_char_p()
        self.library.cuGetErrorString(code, ctypes.byref(text))
        return (text.value or b"?").decode()

    def out(self, name, *arguments, type=ctypes.c_uint64):
        """What an entry point writes through its first parameter."""
        value = type()
        getattr(self, name)(ctypes.byref(value), *arguments)
        return value.value

    def reports(self):
        found = []
        while (text := self.library.cudasim_report(len(found), None)) is not None:
            found.append(text.decode())
        return found

    def clear(self):
        self.library.cudasim_clear()

    def seed(self, number):
        """Blocks and threads in another order from now on; 0: the natural one."""
        self.library.cudasim_seed(ctypes.c_uint64(number))

    def fail(self, spec):
        assert self.library.cudasim_fail(spec.encode() if spec else None) == 0

    def calls(self):
        name = ctypes.c_char_p()
        count = self.library.cudasim_calls(ctypes.byref(name))
        return count, (name.value or b"").decode()

    def count(self, name):
        """Calls of that entry point since the process began."""
        return self.library.cudasim_count(name.encode())

    def alive(self, most=4096):
        """What there is, its beginning if that has more bytes."""
        text = ctypes.create_string_buffer(most)
        self.library.cudasim_alive(text, ctypes.c_size_t(most))
        return text.value.decode()

    # ---- what most tests want ----

    def compile(self, source, *options):
        """The image of a source; raises what the compiler says."""
        program = ctypes.c_void_p()
        self.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"test.cu", 0, None, None)
        given = [b"--gpu-architecture=sm_90", *(o.encode() for o in options)]
        code = self.library.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
        size = self.out_size("nvrtcGetProgramLogSize", program)
        log = ctypes.create_string_buffer(size)
        self.nvrtcGetProgramLog(program, log)
        if code == 0:
            image = ctypes.create_string_buffer(self.out_size("nvrtcGetCUBINSize", program))
            self.nvrtcGetCUBIN(program, image)
        self.nvrtcDestroyProgram(ctypes.byref(program))
        if code != 0:
            raise CudaError("nvrtcCompileProgram", code, log.value.decode())
        return image

    def out_size(self, name, program):
        size = ctypes.c_size_t()
        getattr(self, name)(program, ctypes.byref(size))
        return size.value

    def kernel(self, source, name="k"):
        """The function `name` of a source, whose module lives as long as this driver."""
        if source not in self.images:
            self.images[source] = self.out("cuModuleLoadData", self.compile(source))
        return self.out("cuModuleGetFunction", self.images[source], name.encode())

    def launch(self, function, grid, block, *arguments, shared=0, stream=0):
        grid, block = [(d if isinstance(d, tuple) else (d,)) + (1,) * (3 - len(d if isinstance(d, tuple) else (d,))) for d in (grid, block)]
        values = [ctypes.c_uint64(a) if isinstance(a, int) else a for a in arguments]
        pointers = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(v) for v in values))
        self.cuLaunchKernel(function, *grid, *block, shared, stream, pointers, None)

    def array(self, values):
        """Device memory with these values."""
        values = numpy.ascontiguousarray(values)
        at = self.out("cuMemAlloc_v2", values.nbytes)
        self.cuMemcpyHtoD_v2(at, values.ctypes.data, values.nbytes)
        return at

    def read(self, at, like):
        result = numpy.empty_like(like)
        self.cuMemcpyDtoH_v2(result.ctypes.data, at, result.nbytes)
        return result

    def stream(self):
        return self.out("cuStreamCreate", 1)

    def event(self):
        return self.out("cuEventCreate", 2)

    def synchronize(self):
        self.cuCtxSynchronize()
