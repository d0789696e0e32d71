"""The declarations of xlac.h, as cffi reads them."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "csrc/include/xlac.h"


def declarations():
    """The header without comments and preprocessor lines: what is left is plain C declarations."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", text, flags=re.S)
    return "\n".join(line for line in text.split("\n") if not line.startswith("#"))


def public_functions():
    return sorted(set(re.findall(r"\b(xlac_\w+)\(", re.sub(r"\(\*\w+\)\(", "", declarations()))))
