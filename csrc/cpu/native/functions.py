"""Writes functions.def: the elementwise functions of floats as lists of lane operations, from their one definition. The C compiler
preprocesses ops.def and base/math; what is left is C without branches or loops, which is read here and evaluated on symbols. A function
that is anything else (a loop, a call of libm) has no row. Of complex numbers it is one of the parts of c64. Run it without arguments
after changing one of those; tests/cpu/test_native.py compares what it would write."""
import pathlib
import re
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CSRC = HERE.parents[1]
SOURCE = """
#include "base/math/math.h"
#define MATH_REST(a, b, p) __builtin_fma(a, b, -(p))
#include "base/math/math_dd.h"
#include "base/math/math_called.h"
#include "base/math/math_fma.c"
#include "ir/ops_columns.h"
#undef ON_FLOAT
#define ON_FLOAT(...) , (__VA_ARGS__)
#undef MATH_FUSED
#define MATH_FUSED(name) math_##name##_fma
#define PICK(code, arity, expr, name, ...) name
#define ROW(...) PICK(__VA_ARGS__, EXPR, NONE, )(__VA_ARGS__)
#define NONE(code, arity)
#define OP(code, text, arity, columns) ROW(code, arity columns)
#define EXPR(code, arity, expr) float op_f4_##code(float x, float y, float z) { return expr; }
#include "ir/ops.def"
#undef EXPR
#define EXPR(code, arity, expr) double op_f8_##code(double x, double y, double z) { return expr; }
#include "ir/ops.def"
#undef EXPR
#undef ON_FLOAT
#define ON_FLOAT(...)
#undef ON_COMPLEX
#define ON_COMPLEX(...) , (__VA_ARGS__)
#define PART(part, code, expr) \
  float op_c8_##part##_##code(float a, float b, float c, float d) { \
    math_c64 x = (math_c64){a, b}; math_c64 y = (math_c64){c, d}; return (expr).part; }
#define EXPR(code, arity, expr) PART(re, code, expr) PART(im, code, expr)
#include "ir/ops.def"
float op_c8_re_ABS(float a, float b, float c, float d) { return math_abs_c64((math_c64){a, b}); }
#define PLAIN_QUOTIENT math_div_plain_c64((math_c64){a, b}, (math_c64){c, d})
float op_c8_re_DIVIDE(float a, float b, float c, float d) { return PLAIN_QUOTIENT.re; }
float op_c8_im_DIVIDE(float a, float b, float c, float d) { return PLAIN_QUOTIENT.im; }
#define C16(code, value) \\
  double op_c16_re_##code(double a, double b, double c, double d) { \\
    math_c128 x = (math_c128){a, b}; math_c128 y = (math_c128){c, d}; return (value).re; } \\
  double op_c16_im_##code(double a, double b, double c, double d) { \\
    math_c128 x = (math_c128){a, b}; math_c128 y = (math_c128){c, d}; return (value).im; }
C16(MULTIPLY, math_mul_c128(x, y))
C16(SIGN, math_sign_c128(x))
C16(DIVIDE, math_div_tame_c128(x, y))
C16(SQRT, math_sqrt_tame_c128(x))
C16(RSQRT, math_div_tame_c128((math_c128){1, 0}, math_sqrt_tame_c128(x)))
C16(EXP, math_exp_tame_c128(x))
C16(EXPM1, math_expm1_tame_c128(x))
C16(SINH, math_sinh_tame_c128(x))
C16(COSH, math_cosh_tame_c128(x))
C16(TANH, math_tanh_tame_c128(x))
C16(LOGISTIC, math_div_tame_c128((math_c128){1, 0}, math_add_c128((math_c128){1, 0}, math_exp_tame_c128(math_neg_c128(x)))))
C16(LOG, math_log_tame_c128(x, math_squares(a, b)))
C16(LOG1P, math_log1p_tame_c128(x, math_log1p_square_c128(x)))
C16(ATANH, math_atanh_tame_c128(x))
C16(ASIN, math_asin_tame_c128(x))
C16(ACOS, math_acos_tame_c128(x))
double op_c16_re_ABS(double a, double b, double c, double d) { return math_abs_c128((math_c128){a, b}); }
bool op_wild_DIVIDE(double a, double b, double c, double d) { return math_div_is_tame_c128((math_c128){a, b}, (math_c128){c, d}); }
#define WILD(code, tame) \\
  bool op_wild_##code(double a, double b, double c, double d) { math_c128 x = (math_c128){a, b}; return tame; }
WILD(SQRT, math_sqrt_is_tame_c128(x))
WILD(RSQRT, math_sqrt_is_tame_c128(x) & math_div_is_tame_c128((math_c128){1, 0}, math_sqrt_tame_c128(x)))
WILD(EXP, math_is_below_c128(x, 700))
WILD(EXPM1, math_is_below_c128(x, 700))
WILD(SINH, math_is_below_c128(x, 700))
WILD(COSH, math_is_below_c128(x, 700))
WILD(TANH, math_is_below_c128(x, 300))
WILD(LOGISTIC, math_is_below_c128(x, 700) &
  math_div_is_tame_c128((math_c128){1, 0}, math_add_c128((math_c128){1, 0}, math_exp_tame_c128(math_neg_c128(x)))))
WILD(LOG, math_is_tame(a) & math_is_tame(b) & math_log_is_tame_c128(x, math_squares(a, b)))
WILD(LOG1P, math_is_tame(a) & math_is_tame(b) & (math_log1p_square_c128(x).hi >= -0.5))
WILD(ATANH, math_atanh_is_tame_c128(x))
WILD(ASIN, math_have_squares_c128(x))
WILD(ACOS, math_have_squares_c128(x))
float op_near_SINE(float x, float y, float z) { return math_sin_near_f32(x); }
float op_near_COSINE(float x, float y, float z) { return math_cos_near_f32(x); }
float op_near_TAN(float x, float y, float z) { return math_tan_near_f32(x); }
"""
TOKEN = re.compile(r"""\s*(0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+)?[uUlLfF]*|\d+\.?\d*(?:[eE][+-]?\d+)?[uUlLfF]*|[A-Za-z_]\w*|"[^"]*"
                       |<<=|>>=|->|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|&=|\|=|\^=|\+\+|--|[-+*/%&|^~!<>=?:;,.(){}\[\]])""", re.VERBOSE)
TYPES = {"float": "f4", "double": "f8", "int32_t": "s4", "uint32_t": "u4", "int64_t": "s8", "uint64_t": "u8", "int": "s4", "unsigned": "u4",
         "bool": "b", "_Bool": "b"}
# Functions of f64 with rows of their own, which others' steps refer to.
INNER = {"math_angle": "ATAN2", "math_log_narrow": "LOG", "math_log1p_narrow": "LOG1P", "math_exp_narrow": "EXP", "math_expm1_narrow": "EXPM1",
         "math_turned_f64": "SINE", "math_log_parts_f64": "POWER", "math_log_parts_f64_fma": "POWER",
         "math_hypot_any": "ABS"}
# Of c128: functions of f64 that have rows, and those that libm's code is called for.
WHOLE = {"math_exp_apart": "EXP", "math_expm1_f64": "EXPM1", "math_log1p_f64": "LOG1P"}
CALLED = {"sin": "CALLED_SINE", "cos": "CALLED_COSINE", "atan2": "CALLED_ATAN2"}
TURNED = {"SINE", "COSINE", "TAN", "CHLO_TAN", "ASINH", "ATAN", "ACOSH"}  # of c64: others' rows, at another angle (lower_complex.c)
BINARY = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", ">", "<=", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]
COMPARE = {"==": 0, "!=": 4, "<": 1, "<=": 2, ">": 14, ">=": 13}


class Strange(Exception):
    """Not straight-line, or not of this part of C."""


def preprocessed(cc="cc"):
    return subprocess.run([cc, "-E", "-P", "-std=gnu11", "-I", str(CSRC), "-x", "c", "-"], input=SOURCE, capture_output=True, text=True,
                          check=True).stdout


def tokens(text):
    return TOKEN.findall(text)


def closing(toks, at):
    """The place of the bracket that closes the one at `at`."""
    pairs, depth = {"(": ")", "{": "}", "[": "]"}, 0
    for i in range(at, len(toks)):
        depth += (toks[i] in pairs) - (toks[i] in pairs.values())
        if depth == 0:
            return i
    raise Strange("brackets")


def split(toks, separator):
    """Parts between separators that are in no brackets."""
    parts, depth, part = [], 0, []
    for t in toks:
        depth += (t in "([{") - (t in ")]}")
        if t == separator and depth == 0:
            parts.append(part)
            part = []
        else:
            part.append(t)
    return parts + [part] if part else parts


def without_attributes(toks):
    out, i = [], 0
    while i < len(toks):
        if toks[i] in ("__attribute__", "__asm__"):
            i = closing(toks, i + 1) + 1
        else:
            out += [toks[i]] * (toks[i] not in ("static", "inline", "extern", "const", "restrict", "__extension__", "__inline"))
            i += 1
    return out


def definitions(text):
    """By name: functions as (parameters, body's tokens), and structs as lists of (type, field)."""
    functions, structs, toks, i, start = {}, {}, without_attributes(tokens(text)), 0, 0
    while i < len(toks):
        if toks[i] == "{":
            end, head = closing(toks, i), toks[start:i]
            if "typedef" in head and "struct" in head and len(toks) > end + 1:
                fields = [(decl[0], name) for decl in split(toks[i + 1:end], ";") for name in decl[1:] if name != ","]
                structs[toks[end + 1]] = fields
            elif head and head[-1] == ")" and "=" not in head:
                opening = len(head) - 1 - head[::-1].index("(")
                functions[head[opening - 1]] = (split(head[opening + 1:-1], ","), toks[i + 1:end])
                start = end + 1
            i = end
        elif toks[i] == ";":
            start = i + 1
        i += 1
    return functions, structs


def number(text):
    """A literal's (type, value)."""
    body = text.rstrip("uUlL") if text[:2].lower() == "0x" and not re.search("[.pP]", text) else text
    if text[:2].lower() == "0x" and re.search("[.pP]", text):
        return ("f4" if text[-1] in "fF" else "f8"), float.fromhex(text.rstrip("fFlL"))
    if text[:2].lower() == "0x":
        value = int(body, 16)
        return ("s4" if value < 1 << 31 else "u4" if value < 1 << 32 else "s8" if value < 1 << 63 else "u8"), value
    if re.search("[.eE]", text) or text[-1] in "fF":
        return ("f4" if text[-1] in "fF" else "f8"), float(text.rstrip("fFlL"))
    value = int(text.rstrip("uUlL"))
    return ("s4" if value < 1 << 31 else "s8"), value


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Program:
    """Steps on lanes, each written once. A value is (type, number of its step), a constant (type, None, value)."""

    def __init__(self, wide=False):
        self.steps, self.found, self.wide = [], {}, wide

    def step(self, t, op, width, inputs=(), imm=0, bits=0):
        key = (op, width, tuple(inputs), imm, bits)
        if key not in self.found:
            self.found[key] = len(self.steps)
            self.steps.append(key)
        return (t, self.found[key])

    def constant(self, t, value):
        if t == "f4":
            value = single(value)
        return (t, None, value)

    def place(self, v):
        """The number of the step that gives v."""
        if len(v) == 2:
            return v[1]
        width = int(v[0][1])
        form = {"f4": "<f", "f8": "<d"}.get(v[0])
        bits = int.from_bytes(struct.pack(form, v[2]), "little") if form else v[2] & ((1 << 8 * width) - 1)
        return self.step(v[0], "CONSTANT", width, bits=bits)[1]

    def op(self, t, op, *values, imm=0):
        return self.step(t, op, int(t[1]), [self.place(v) for v in values], imm)

    def sign(self, t):
        return ("u" + t[1], None, 1 << (8 * int(t[1]) - 1))

    def negated(self, v):
        """What v is the negative of, or None."""
        if len(v) == 3 or self.steps[v[1]][0] != "XOR":
            return None
        a, b = self.steps[v[1]][2]
        return (v[0], a) if b == self.place(self.sign(v[0])) else None

    def negative(self, v):
        if len(v) == 3:
            return (v[0], None, -v[2])
        if v[0][0] == "f":
            return self.op(v[0], "XOR", v, self.sign(v[0]))
        return self.op(v[0], "ISUB", (v[0], None, 0), v)

    def fma(self, a, b, c):
        na, nb, nc = self.negated(a), self.negated(b), self.negated(c)
        minus = (na is not None) ^ (nb is not None)
        name = ("FNM" if minus else "FM") + ("S" if nc else "A")
        return self.op(a[0], name, na or a, nb or b, nc or c)

    def convert(self, v, t):
        if v[0] == t:
            return v
        if len(v) == 3:
            value = v[2]
            if t[0] == "f":
                return self.constant(t, float(value))
            if v[0][0] == "f":
                raise Strange("a constant to an integer")
            return (t, None, value)
        f, to = v[0][0] == "f", t[0] == "f"
        if v[0] == "b" or t == "b":
            raise Strange("truth values as numbers")
        if f and to:
            return self.op(t, "F4_F8" if t == "f8" else "F8_F4", v)
        if f or to:
            if v[0] == "s4":
                return self.op(t, "S4_F", v)
            if t == "s4":
                return self.op(t, f"F{v[0][1]}_S4", v)
            raise Strange("a conversion of " + v[0] + " to " + t)
        if v[0][1] == t[1]:
            return (t, v[1])
        if t[1] == "8":
            return self.op(t, ("SX" if v[0][0] == "s" else "ZX") + v[0][1], v)
        return self.op(t, "RESIZE", v)

    def truth(self, v):
        if v[0] == "b":
            return v
        if v[0][0] == "f":
            return self.compare("!=", v, (v[0], None, 0.0))
        return self.compare("!=", v, (v[0], None, 0))

    def mask_not(self, v):
        return self.step("b", "MASK_NOT", 0, [self.place(v)])

    def opposite(self, v):
        """The same as mask_not of comparisons of floats, but bits beside the lanes are 0."""
        op, width, inputs, imm, _ = self.steps[v[1]]
        if op == "FCMP":
            return self.step("b", op, width, inputs, imm ^ 4)
        if op == "MASK_NOT":
            return ("b", inputs[0])
        other = {"MASK_AND": "MASK_OR", "MASK_OR": "MASK_AND"}[op]
        return self.step("b", other, 0, [self.place(self.opposite(("b", i))) for i in inputs])

    def compare(self, op, a, b):
        if a[0][0] == "f":
            return self.step("b", "FCMP", int(a[0][1]), [self.place(a), self.place(b)], COMPARE[op])
        width = int(a[0][1])
        if op in ("==", "!="):
            same = self.step("b", "IEQ", width, [self.place(a), self.place(b)])
            return same if op == "==" else self.mask_not(same)
        if a[0][0] != "s":
            raise Strange("an order of unsigned numbers")
        if op in ("<", ">="):
            a, b = b, a
        more = self.step("b", "SGT", width, [self.place(a), self.place(b)])
        return more if op in ("<", ">") else self.mask_not(more)

    def select(self, cond, yes, no):
        """A smaller or a larger of two is one instruction, whose result for NaN and zeros is that of the selection."""
        op, width, inputs, imm, _ = self.steps[cond[1]]
        y, n, t = self.place(yes), self.place(no), yes[0]
        if op == "MASK_NOT":
            return self.select(("b", inputs[0]), no, yes)
        if op == "FCMP" and imm in (1, 14) and t == f"f{width}" and {y, n} == set(inputs):
            return self.step(t, "FMIN" if (imm == 1) == (y == inputs[0]) else "FMAX", width, [y, n])
        if op == "SGT" and t == "s4" and {y, n} == set(inputs):
            return self.step(t, "SMAX" if y == inputs[0] else "SMIN", width, [y, n])
        return self.step(t, "SELECT", int(t[1]), [cond[1], y, n])


def usual(a, b):
    """The type of an expression of two numbers."""
    for t in ("f8", "f4", "u8", "s8", "u4"):
        if t in (a, b):
            return t
    return "s4"


class Reader:
    """Evaluates one function's body on symbols."""

    def __init__(self, world, program, toks, names):
        self.world, self.p, self.toks, self.at, self.names = world, program, toks, 0, names

    def peek(self, n=0):
        return self.toks[self.at + n] if self.at + n < len(self.toks) else ""

    def take(self, wanted=None):
        t = self.peek()
        if wanted and t != wanted:
            raise Strange(f"{wanted}, not {t}")
        self.at += 1
        return t

    def run(self):
        while self.peek():
            if self.peek() == "return":
                self.take()
                return self.expression()
            self.statement()
        raise Strange("no return")

    def statement(self):
        functions, structs = self.world
        if self.peek() in ("if", "for", "while", "do", "switch", "goto", "{"):
            raise Strange(self.peek())
        if self.peek() in TYPES or self.peek() in structs:
            t = self.take()
            if self.peek(0) == "*":
                raise Strange("a pointer")
            while True:
                name, value = self.take(), None
                if self.peek() == "[":
                    value = self.table(t)
                elif self.peek() == "=":
                    self.take()
                    value = self.expression()
                    if t in TYPES:
                        value = self.p.truth(value) if TYPES[t] == "b" else self.p.convert(value, TYPES[t])
                self.names[name] = value if value is not None else ("undefined", TYPES.get(t, t))
                if self.take() == ";":
                    return
        target = self.take()
        pointer = target == "*"
        if pointer:
            target = self.take()
        op = self.take()
        old = self.names[target]
        if pointer:
            reader, name = old
            reader.names[name] = self.p.convert(self.expression(), reader.names[name][1])
        elif op == "=":
            self.names[target] = self.assigned(old, self.expression())
        elif op.endswith("=") and op[:-1] in "+ - * / & | ^".split():
            self.names[target] = self.assigned(old, self.binary_op(op[:-1], old, self.expression()))
        else:
            raise Strange("a statement")
        self.take(";")

    def table(self, t):
        """[16] = {numbers}: a constant, read at the low four bits of a place."""
        self.take("[")
        size = self.take()
        self.take("]")
        if size != "16" or t != "float" or self.take() != "=":
            raise Strange("an array")
        values = [self.value(part) for part in self.arguments()]
        return ("table", tuple(int.from_bytes(struct.pack("<f", self.p.convert(v, "f4")[2]), "little") for v in values))

    def read(self, table):
        """table[place & 15]"""
        end = closing(self.toks, self.at)
        place, low = self.toks[self.at + 1:end - 2], self.toks[end - 2:end]
        self.at = end + 1
        if table[0] != "table" or len(table[1]) != 16 or low != ["&", "15"]:
            raise Strange("an array")
        return self.p.step("f4", "TABLE", 4, [self.p.place(self.value(place))], bits=table[1])

    def assigned(self, old, value):
        t = old[1] if old[0] == "undefined" else old[0]
        return self.p.truth(value) if t == "b" else self.p.convert(value, t)

    def expression(self):
        cond = self.binary(0)
        if self.peek() != "?":
            return cond
        self.take()
        yes = self.expression()
        self.take(":")
        no = self.expression()
        if yes[0] == "b" or no[0] == "b":
            raise Strange("a choice of truth values")
        t = usual(yes[0], no[0])
        yes, no = self.p.convert(yes, t), self.p.convert(no, t)
        cond = self.p.truth(cond)
        if len(cond) == 3:
            raise Strange("a constant condition")
        return self.p.select(cond, yes, no)

    def binary(self, level):
        if level == len(BINARY):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in BINARY[level]:
            op = self.take()
            left = self.binary_op(op, left, self.binary(level + 1))
        return left

    def binary_op(self, op, a, b):
        p = self.p
        if op in ("&&", "||") or (op in ("&", "|") and "b" in (a[0], b[0])):
            return p.step("b", "MASK_AND" if op[0] == "&" else "MASK_OR", 0, [p.place(p.truth(a)), p.place(p.truth(b))])
        if op in ("<<", ">>"):
            if len(b) != 3:
                raise Strange("a shift by no constant")
            name = "SHL" if op == "<<" else "SAR" if a[0][0] == "s" else "SHR"
            if len(a) == 3:
                return (a[0], None, a[2] << b[2] if op == "<<" else a[2] >> b[2])
            if name == "SAR" and a[0][1] == "8":
                raise Strange("an arithmetic shift of 64 bits")
            return p.op(a[0], name, a, imm=b[2])
        t = usual(a[0], b[0])
        a, b = p.convert(a, t), p.convert(b, t)
        if op in COMPARE:
            return p.compare(op, a, b)
        if len(a) == 3 and len(b) == 3:
            return self.folded(op, t, a[2], b[2])
        if t[0] == "f":
            names = {"+": "FADD", "-": "FSUB", "*": "FMUL", "/": "FDIV"}
        else:
            names = {"+": "IADD", "-": "ISUB", "&": "AND", "|": "OR", "^": "XOR"}
        if op not in names:
            raise Strange(op)
        return p.op(t, names[op], a, b)

    def folded(self, op, t, a, b):
        if t == "f4" or op not in "+-*/" or (t[0] != "f" and op == "/"):
            raise Strange("constants")
        value = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}[op]()
        return (t, None, value)

    def unary(self):
        p, t = self.p, self.peek()
        if t == "-":
            self.take()
            return p.negative(self.unary())
        if t == "~":
            self.take()
            v = self.unary()
            return (v[0], None, ~v[2]) if len(v) == 3 else p.op(v[0], "XOR", v, (v[0], None, -1))
        if t == "!":
            self.take()
            return p.mask_not(p.truth(self.unary()))
        if t == "(" and self.peek(1) in TYPES and self.peek(2) == ")":
            self.take()
            kind = TYPES[self.take()]
            self.take()
            return p.convert(self.unary(), kind)
        return self.postfix()

    def postfix(self):
        v = self.primary()
        while self.peek() == ".":
            self.take()
            v = v[1][self.take()]
        return v

    def primary(self):
        t = self.take()
        if t == "(":
            if self.peek() in self.world[1] and self.peek(1) == ")":
                return self.compound()
            v = self.expression()
            self.take(")")
            return v
        if t == "_Generic":
            return self.generic()
        if re.match(r"\d|\.\d", t):
            kind, value = number(t)
            return self.p.constant(kind, value)
        if self.peek() == "(":
            return self.call(t)
        if t not in self.names:
            raise Strange("name " + t)
        if self.peek() == "[":
            return self.read(self.names[t])
        return self.names[t]

    def compound(self):
        struct_name = self.take()
        fields = self.world[1][struct_name]
        self.take(")")
        self.take("{")
        values = {}
        for kind, name in fields:
            values[name] = self.p.convert(self.expression(), TYPES[kind])
            self.take("," if name != fields[-1][1] else "}")
        return ("struct " + struct_name, values)

    def generic(self):
        end = closing(self.toks, self.at)
        parts = split(self.toks[self.at + 1:end], ",")
        self.at = end + 1
        kind = Reader(self.world, self.p, parts[0], self.names).expression()[0]
        for part in parts[1:]:
            if kind in (TYPES.get(part[0]), "struct " + part[0]):
                if self.peek() == "(":
                    return self.call(part[2])
                return Reader(self.world, self.p, part[2:], self.names).expression()  # a constant of the argument's type
        raise Strange("_Generic")

    def arguments(self):
        end = closing(self.toks, self.at)
        parts = split(self.toks[self.at + 1:end], ",")
        self.at = end + 1
        return parts

    def value(self, toks):
        return Reader(self.world, self.p, toks, self.names).expression()

    def call(self, name):
        p, parts = self.p, self.arguments()
        if name in ("base_f32_bits", "base_f64_bits", "base_f32_of", "base_f64_of"):
            v = self.value(parts[0])
            t = {"base_f32_bits": "u4", "base_f64_bits": "u8", "base_f32_of": "f4", "base_f64_of": "f8"}[name]
            return (t, p.place(v))
        if name in ("__builtin_inff", "__builtin_inf"):
            return ("f4" if name[-1] == "f" and name != "__builtin_inf" else "f8", None, float("inf"))
        if name in ("__builtin_nanf", "__builtin_nan"):
            return ("f4" if name == "__builtin_nanf" else "f8", None, float("nan"))
        name = {"math_hypot": "math_hypot_any"}.get(name, name)
        functions = self.world[0]
        builtin = re.fullmatch(r"__builtin_(fabs|sqrt|copysign|fma)(f?)", name)
        rounding = re.fullmatch(r"math_(rint|floor|ceil)_f(32|64)", name)
        if builtin:
            t = "f4" if builtin[2] else "f8"
            return self.builtin(builtin[1], t, [p.convert(self.value(part), t) for part in parts])
        if rounding:  # has an instruction
            t = "f4" if rounding[2] == "32" else "f8"
            return p.op(t, "FROUND", p.convert(self.value(parts[0]), t), imm={"rint": 8, "floor": 9, "ceil": 10}[rounding[1]])
        if name == "math_pick":
            cond, yes, no = (self.value(part) for part in parts)
            return p.select(cond, p.convert(yes, "f8"), p.convert(no, "f8"))
        if self.p.wide and name in CALLED:
            return p.op("f8", CALLED[name], *(self.value(part) for part in parts))
        if self.p.wide and name in WHOLE:
            return p.op("f8", "WHOLE", self.value(parts[0]), imm="SCALAR_" + WHOLE[name])
        if self.p.wide and name == "math_hyperbolic_f64":
            x = self.value(parts[0])
            sinh, cosh = (p.op("f8", "WHOLE", x, imm="SCALAR_" + code) for code in ("SINH", "COSH"))
            return ("struct math_hyperbolic", {"s": self.builtin("fabs", "f8", [sinh]), "c": cosh})
        if name not in functions:
            raise Strange("a call of " + name)
        if name in ("math_sin_f32", "math_cos_f32"):  # lowering knows how
            return p.op("f4", "SINE" if "sin" in name else "COSINE", p.convert(self.value(parts[0]), "f4"))
        if name in INNER:
            values = [p.convert(self.value(part), "f8") for part in parts]
            if INNER[name] == "POWER" or all(len(v) == 2 for v in values):  # of a constant it is shorter
                power = INNER[name] == "POWER"
                return p.op("f8", "INNER_POWER", *values) if power else p.op("f8", "INNER", *values, imm="SCALAR_" + INNER[name])
        parameters, body = functions[name]
        names = {}
        for parameter, part in zip(parameters, parts):
            if "*" in parameter:
                names[parameter[-1]] = (self, part[1])
            else:
                value = self.value(part)
                names[parameter[-1]] = self.p.convert(value, TYPES[parameter[0]]) if parameter[0] in TYPES else value
        result = Reader(self.world, self.p, body, names).run()
        return result

    def builtin(self, name, t, args):
        p = self.p
        if name == "fabs":
            return p.op(t, "ANDN", p.sign(t), args[0])
        if name == "sqrt":
            return p.op(t, "FSQRT", args[0])
        if name == "fma":
            return p.fma(*args)
        return p.op(t, "OR", p.op(t, "ANDN", p.sign(t), args[0]), p.op(t, "AND", p.sign(t), args[1]))


def returned(world, p, name, names):
    """The function's value in its own type."""
    return Reader(world, p, world[0][name][1], names).run()


def live(steps, last):
    """The steps that the last one needs, renumbered."""
    needed, waiting = set(), [last]
    while waiting:
        i = waiting.pop()
        if i not in needed:
            needed.add(i)
            waiting += steps[i][2]
    order = sorted(needed)
    place = {old: new for new, old in enumerate(order)}
    return [(steps[i][0], steps[i][1], [place[j] for j in steps[i][2]], *steps[i][3:]) for i in order]


def programs(text):
    """By (type, opcode): steps; and why there are none."""
    world, found, missing = definitions(text), {}, {}
    for name in world[0]:
        if re.match(r"op_c\d+_im", name) or not (row := re.fullmatch(r"op_(f4|f8|near|c8|c16|wild)_(?:re_)?(\w+)", name)):
            continue
        if row[1] == "c8" and row[2] in TURNED:
            continue
        p, t = Program(row[1] in ("c16", "wild")), "f8" if row[1] in ("f8", "c16", "wild") else "f4"
        names = {x: p.step(t, "ARGUMENT", int(t[1]), imm=i) for i, x in enumerate("abcd" if row[1] in ("c8", "c16", "wild") else "xyz")}
        try:
            v = returned(world, p, name, names)
            v = p.opposite(v) if row[1] == "wild" else p.convert(v, t)
            if (other := f"op_{row[1]}_im_{row[2]}") in world[0] and row[1][0] == "c":
                parts = [p.place(v), p.place(p.convert(returned(world, p, other, names), t))]
                v = p.step(row[1], "JOIN", 8, parts)
            steps = live(p.steps, p.place(v))
            if len(steps) > 255:
                raise Strange("too long")
            if steps[-1][0] not in ("SINE", "COSINE"):
                found[row[1], row[2]] = steps
        except (Strange, KeyError, TypeError, IndexError) as why:
            missing[row[1], row[2]] = repr(why)
    for name, code in INNER.items():
        p = Program()
        names = {x[-1]: p.step("f8", "ARGUMENT", 8, imm=i) for i, x in enumerate(world[0][name][0])}
        v = returned(world, p, name, names)
        found["inner", code] = live(p.steps, p.place(v))
    return found, missing


def written(found):
    lines = ["/* Written by functions.py: elementwise functions of floats as operations on lanes. STEP(op, bytes of a lane, number, operands); a",
             " * CONSTANT's operands are the low and the high byte of its place among the NAT_NUMBERs; the last step of a FUNCTION is its result; its",
             " * numbers are its place among all, the widest lane's bytes, its first step's place among all, and how many there are. A",
             " * function is of a type and an opcode; NEAR ones are of f32 below 2^27, C8 and C16 ones of the parts of c64 and c128, WILD says where",
             " * such a one is not right. A TABLE's number is its place among the NAT_TABLEs. */"]
    numbers = sorted({step[4] for steps in found.values() for step in steps if step[0] == "CONSTANT"})
    line = ""
    for bits in numbers:
        if len(line) > 120:
            lines.append(line.rstrip())
            line = ""
        line += f"NAT_NUMBER({hex(bits)}) "
    lines.append(line.rstrip())
    tables = sorted({step[4] for steps in found.values() for step in steps if step[0] == "TABLE"})
    lines += [f"NAT_TABLE({', '.join(hex(v) for v in table)})" for table in tables]
    first = 0
    for place, ((t, code), steps) in enumerate(found.items(), 1):
        lines.append(f"FUNCTION({t.upper()}, {code}, {place}, {max(s[1] for s in steps)}, {first}, {len(steps)},")
        first += len(steps)
        line = " "
        for op, width, inputs, imm, bits in steps:
            at = numbers.index(bits) if op == "CONSTANT" else 0
            imm = tables.index(bits) if op == "TABLE" else imm
            a, b, c = [at % 256, at // 256, 0] if op == "CONSTANT" else [*inputs, 0, 0, 0][:3]
            assert c == 0 or imm == 0  # which share a byte
            step = f" STEP({op}, {width}, {imm}, {a}, {b}, {c})"
            if len(line + step) > 150:
                lines.append(line)
                line = " "
            line += step
        lines.append(line + ")")
    return "\n".join(lines) + "\n"


def main():
    found, missing = programs(preprocessed())
    if "-v" in sys.argv:
        print(*(f"{k}: {v}" for k, v in missing.items()), sep="\n")
        print(*(f"{k}: {len(v)}" for k, v in found.items()))
    (HERE / "functions.def").write_text(written(found))


if __name__ == "__main__":
    main()
