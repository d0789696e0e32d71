"""Writes the C library's release: one folder with xlac.h, xlac_ffi.h, xlac_all.c (the whole core, no other file of ours needed), the CMake
project that builds, installs and describes it, and an example.

  python .ci/amalgamate.py FOLDER"""
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CSRC = ROOT / "csrc"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
SIDE = {"csrc/CMakeLists.txt": "CMakeLists.txt", "csrc/include/xlac.h": "xlac.h", "csrc/include/xlac_ffi.h": "xlac_ffi.h",
        "csrc/include/xlac_network.h": "xlac_network.h", "docs/embed.c": "embed.c",
        "docs/c-library.md": "README.md", "LICENSE": "LICENSE", "CHANGELOG.md": "CHANGELOG.md"}


def name_of(path):
    return path.relative_to(CSRC).as_posix()


def inlined(path, seen):
    """The lines of a file with those of every file it includes: a guarded header's where it is met first, a table's each time. Each line keeps
    the file and number it has here: tables name fields by their lines, and assertions say where they are."""
    yield f'#line 1 "{name_of(path)}"'
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            yield line
            continue
        target = (path.parent / found[1]).resolve()
        if target.parent == CSRC / "include" or not target.exists():
            yield f'#include "{target.name}"'
            continue
        assert target.is_relative_to(CSRC), f"{path}:{number} includes {target}"
        if target in seen:
            yield ""
            continue
        if re.search(r"^#ifndef XLAC_\w+_H$", target.read_text(), re.M):
            seen.add(target)
        yield from inlined(target, seen)
        yield f'#line {number + 1} "{name_of(path)}"'


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "xlac_all.c").write_text("\n".join(inlined(CSRC / "xlac_all.c", set())) + "\n")
    for source, name in SIDE.items():
        shutil.copyfile(ROOT / source, folder / name)
    page = folder / "README.md"  # whose links lead to pages that are not in the release
    page.write_text(re.sub(r"\[([^]]+)\]\((?!http)([^)]+)\)", r"\1 (docs/\2 of a checkout)", page.read_text()))


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
