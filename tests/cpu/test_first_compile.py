"""The library for products is found without importing its package, and opened by the first program that needs it."""
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import xlac

pytest.importorskip("scipy_openblas32")

PRELUDE = '''
import sys, threading
import numpy as np
import xlac
def opened():
    return "libscipy_openblas.so" in open("/proc/self/maps").read()
ADD = xlac.parse("HloModule m\\nENTRY e {\\n  x = f32[3] parameter(0)\\n  ROOT y = f32[3] add(x, x)\\n}\\n")
DOT = xlac.parse("HloModule m\\nENTRY e {\\n  x = f32[200,300] parameter(0)\\n  y = f32[300,70] parameter(1)\\n"
                 "  ROOT z = f32[200,70] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\\n}\\n")
POTRF = xlac.parse("""HloModule m
ENTRY e {
  x = f32[2,2]{0,1} parameter(0)
  ROOT r = (f32[2,2]{0,1}, s32[]) custom-call(x), custom_call_target="lapack_spotrf_ffi", operand_layout_constraints={f32[2,2]{0,1}},
    api_version=API_VERSION_TYPED_FFI, backend_config="{uplo = 76 : ui8}"
}
""")
FOUR = np.float32([[4, 0], [0, 9]])
'''


def fresh(code, **more):
    done = subprocess.run([sys.executable, "-c", PRELUDE + code], capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_without_products_neither_imports_the_package_nor_opens_the_library():
    fresh('''
xlac.compile(ADD)(np.ones(3, "f4")), xlac.interpret(ADD, np.ones(3, "f4")), xlac.interpret(DOT, np.ones((200, 300), "f4"), np.ones((300, 70), "f4"))
assert xlac.compile(ADD).steps["blas"] == "" and not opened()
assert not {"scipy_openblas32", "importlib.metadata", "importlib.util", "email"} & set(sys.modules)
''')


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("use", ["xlac.compile(DOT)", "xlac.compile(POTRF)(FOUR)", "xlac.interpret(POTRF, FOUR)",
                                 "xlac.load(xlac.compile(DOT).serialize())"])
def test_a_program_with_one_opens_it_still_without_the_package(use):
    fresh(f'''
assert not opened()
{use}
assert opened() and "scipy_openblas32" not in sys.modules
''')


def test_it_can_be_switched_off():
    fresh('''
exe = xlac.compile(DOT, blas=False)
assert exe.steps["blas"] == "" and not opened()
assert (exe(np.ones((200, 300), "f4"), np.ones((300, 70), "f4")) == 300).all()
''')


def test_threads_open_it_at_the_same_time():
    fresh('''
interpreted = xlac.compile(POTRF)
def work():
    for _ in range(20):
        got.append(xlac.compile(DOT)(np.ones((200, 300), "f4"), np.ones((300, 70), "f4"))[0, 0])
        got.append(xlac.interpret(POTRF, FOUR)[0][0, 0] * interpreted(FOUR)[0][1, 1])
got = []
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
assert sorted(set(map(float, got))) == [6.0, 300.0] and len(got) == 320
''')


def package(folder, body, library=""):
    """A package scipy_openblas32 of our own."""
    where = folder / "scipy_openblas32"
    (where / "lib").mkdir(parents=True)
    (where / "__init__.py").write_text(body)
    if library:
        (where / "lib" / library).write_text("")
    return where


def test_the_first_package_on_the_path_is_taken_by_its_folder(tmp_path):
    where = package(tmp_path, "raise SystemError('imported')", "libscipy_openblas.so")
    found = fresh(f"sys.path.insert(0, {str(tmp_path)!r}); print(xlac._openblas())")
    assert found.strip() == str(where / "lib" / "libscipy_openblas.so")


def test_a_zipped_package_is_asked_itself(tmp_path):
    library = tmp_path / "libscipy_openblas_elsewhere.so"
    library.write_text("")
    body = f"def get_lib_dir(): return {str(tmp_path)!r}\ndef get_library(fullname): return {library.name!r}\n"
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as file:
        file.writestr("scipy_openblas32/__init__.py", body)
    assert fresh(f"sys.path.insert(0, {str(tmp_path / 'all.zip')!r}); print(xlac._openblas())").strip() == str(library)


@pytest.mark.parametrize("body", ["raise ImportError('broken')", "raise OSError('cannot open shared object')", "", "def get_lib_dir(): return '/nowhere'",
                                  "import os\ndef get_lib_dir(): return '/nowhere'\ndef get_library(fullname): return 'lib.so'"])
def test_a_package_without_a_library_is_none(tmp_path, body):
    package(tmp_path, body)
    found = fresh(f'''
sys.path.insert(0, {str(tmp_path)!r})
print(xlac._openblas())
assert (xlac.compile(DOT)(np.ones((200, 300), "f4"), np.ones((300, 70), "f4")) == 300).all()
''')
    assert found.strip() == "None"


def test_a_finder_that_knows_nothing_of_specs_is_passed_over():
    fresh('''
class Old:
    pass
class Failing:
    def find_spec(self, name, path, target=None):
        raise ImportError("no")
sys.meta_path[:0] = [Old(), Failing()]
assert xlac._openblas().endswith("libscipy_openblas.so")
''')


def test_a_path_that_is_no_library_leaves_products_to_others(tmp_path):
    module = xlac.parse("HloModule m\nENTRY e {\n  x = f32[200,300] parameter(0)\n  y = f32[300,70] parameter(1)\n"
                                      "  ROOT z = f32[200,70] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n")
    exe = xlac.compile(module, blas=tmp_path / "nothing.so")
    assert (exe(np.ones((200, 300), "f4"), np.ones((300, 70), "f4")) == 300).all()
