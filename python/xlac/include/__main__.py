"""python -m xlac.include --cflags --libs: what a C compiler needs; --folder: where xlac.pc and xlacConfig.cmake lie."""
import argparse
import pathlib

from . import directory, library


def main():
    parser = argparse.ArgumentParser(prog="python -m xlac.include", description=__doc__)
    for name in ("cflags", "libs", "folder"):
        parser.add_argument(f"--{name}", action="store_true")
    args = parser.parse_args()
    place = pathlib.Path(library()).parent
    said = [f"-I{directory()}"] * args.cflags + [f"-L{place} -lxlac -Wl,-rpath,{place}"] * args.libs
    said += [str(pathlib.Path(__file__).resolve().parent)] * args.folder
    print(" ".join(said) or parser.format_usage().strip())


if __name__ == "__main__":
    main()
