"""Programs in C find the library of an installation: by flags, by pkg-config, by CMake."""
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from xlac import include

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(include.__file__).parent  # of the installation that the tests run against
EMBED = ROOT / "docs/embed.c"
needs_library = pytest.mark.skipif(not include.library().endswith("libxlac.so"), reason="this build has no libxlac.so")


def ask(*flags):
    return subprocess.run([sys.executable, "-m", "xlac.include", *flags], capture_output=True, text=True, check=True).stdout.split()


def runs(program):
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    program = tmp_path_factory.mktemp("flags") / "embed"
    subprocess.run(["cc", EMBED, *ask("--cflags"), *ask("--libs"), "-o", program], check=True)
    return runs(program)


@needs_library
def test_by_flags(wanted):
    assert "2" in wanted and ask("--folder") == [str(FOLDER)]


@needs_library
def test_by_pkg_config(tmp_path, wanted):
    if not shutil.which("pkg-config"):
        pytest.skip("there is no pkg-config")
    command = ["pkg-config", "--cflags", "--libs", "xlac"]
    flags = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin:/usr/local/bin", "PKG_CONFIG_PATH": str(FOLDER)}).stdout.split()
    subprocess.run(["cc", EMBED, *flags, "-o", tmp_path / "embed"], check=True)
    assert runs(tmp_path / "embed") == wanted


@needs_library
def test_by_cmake(tmp_path, wanted):
    if subprocess.run(["cmake", "--version"], capture_output=True, check=False).returncode if shutil.which("cmake") else True:
        pytest.skip("there is no CMake")
    (tmp_path / "CMakeLists.txt").write_text(f'cmake_minimum_required(VERSION 3.16)\nproject(e C)\nfind_package(xlac REQUIRED)\nadd_executable(embed "{EMBED}")\n'
                                             "target_link_libraries(embed xlac::xlac)\n")
    subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-Dxlac_DIR={FOLDER}"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, stdout=subprocess.DEVNULL)
    assert runs(tmp_path / "build/embed") == wanted


def test_versions_agree():
    version = re.search(r'(?m)^version = "(.*)"', (ROOT / "pyproject.toml").read_text())[1]
    assert f"Version: {version}\n" in (FOLDER / "xlac.pc").read_text() and f"set(xlac_VERSION {version})" in (FOLDER / "xlacConfig.cmake").read_text()
    assert f"project(xlac VERSION {version} " in (ROOT / "csrc/CMakeLists.txt").read_text()
