"""Small modules that the verifier refuses: tests/ir/cases/verify_*.hlo, many in one file, each beside what is expected.

    //// what is wrong with the module
    //// verify VERIFY_SHAPE 5:8; lenient: refuses; XLA refuses
    HloModule m
    ...

The second line says who refuses it (`parse`: the reader, `verify`: the strict verifier), with which error code and where, what
the verifier does with xla_compat=True (`mixed`: accepts with mixed_floats=True too), and what XLA 0.10.2 does: refuses, accepts, crashes, `does not read` the text, or `not
asked` where its answer depends on module attributes that can't be put into XLA's pipeline from outside.
"""
import pathlib
import re
from typing import NamedTuple

FOLDER = pathlib.Path(__file__).parent / "cases"
HEAD = re.compile(r"^//// (.*)\n//// (parse|verify) (\w+) (\d+):(\d+); lenient: (accepts|mixed|refuses); XLA (.*)\n", re.M)


class Case(NamedTuple):
    family: str
    about: str
    stage: str
    code: str
    line: int
    col: int
    lenient: str
    xla: str
    text: str

    @property
    def id(self):
        return self.family + "-" + re.sub(r"\W+", "-", self.about)


def all_cases():
    for path in sorted(FOLDER.glob("verify_*.hlo")):
        text = path.read_text(encoding="utf-8")
        heads = list(HEAD.finditer(text))
        ends = [m.start() for m in heads[1:]] + [len(text)]
        for m, end in zip(heads, ends):
            about, stage, code, line, col, lenient, xla = m.groups()
            yield Case(path.stem[len("verify_"):], about, stage, code, int(line), int(col), lenient, xla,
                       text[m.end():end].rstrip("\n") + "\n")
