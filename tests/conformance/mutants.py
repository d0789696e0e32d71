"""Small changes of StableHLO texts, most of which make them wrong somewhere: a size, an element type, a number, an attribute, an
operand. Deterministic for a given random.Random."""
import re

ELEMENTS = ["f32", "f64", "i32", "i64", "i1", "ui8", "bf16", "complex<f32>", "i8", "f16"]
WORDS = ["LT", "EQ", "FLOAT", "SIGNED", "TOTALORDER", "DEFAULT", "HIGHEST", "FFT", "IRFFT", "TRANSPOSE", "UNIFORM", "NORMAL"]
TENSOR = r"tensor<[^<>]*(?:<[^<>]*>)?>"
ATTRIBUTE = r"[a-z_]+ = [^,{}=\[\]<>]*(?:<[^<>]*>|\[[^\[\]]*\])?(?: : \w+)?"


def change(pattern, replace):
    """A mutation of one place that `pattern` finds; replace(random, match) says what stands there afterwards."""
    def mutation(random, text):
        found = list(re.finditer(pattern, text))
        if not found:
            return None
        m = random.choice(found)
        return text[:m.start()] + replace(random, m) + text[m.end():]
    return mutation


def borrow(pattern):
    """Puts in one place what stands in another."""
    def mutation(random, text):
        found = list(re.finditer(pattern, text))
        if len(found) < 2:
            return None
        m, other = random.choice(found), random.choice(found)
        return text[:m.start()] + other[0] + text[m.end():]
    return mutation


def other_size(random, m):
    return random.choice(["0", "1", "2", "3", "7", "?", "4" if m[0] == "?" else str(int(m[0]) + 1)])


def other_number(random, m):
    return random.choice(["-1", "0", "1", "2", "3", "5", "100", str(int(m[0]) + 1), str(int(m[0]) - 1)])


size = change(r"(?<=[<x])(\d+|\?)(?=x)", other_size)
lower_rank = change(r"(?<=[<x])(\d+|\?)x", lambda random, m: "")
higher_rank = change(r"tensor<", lambda random, m: m[0] + random.choice(["1x", "2x", "?x"]))
element = change(r"(?<=[<x])(f32|f64|i32|i64|i1|ui8|bf16|f16|i8|complex<f32>)(?=>)", lambda random, m: random.choice(ELEMENTS))
number = change(r"(?<=[ \[:=])-?\d+(?=[,\]> ])", other_number)
fewer_numbers = change(r"(?<=[\[ ])-?\d+, ", lambda random, m: "")
more_numbers = change(r"(?<=[\[ ])-?\d+, ", lambda random, m: m[0] * 2)
attribute_gone = change(r"\b" + ATTRIBUTE + r",\s*", lambda random, m: "")
last_attribute_gone = change(r",\s*" + ATTRIBUTE + r"(?=\s*\})", lambda random, m: "")
truth = change(r"\b(true|false)\b", lambda random, m: "false" if m[0] == "true" else "true")
word = change(r"\b[A-Z][A-Z_]+\b", lambda random, m: random.choice(WORDS))
operand_gone = change(r"%\w+, (?=%)", lambda random, m: "")
operand = borrow(r"%\w+")
one_type = borrow(TENSOR)


def two_types(random, text):
    changed = one_type(random, text)
    return changed and one_type(random, changed)


def type_everywhere(random, text):
    """One type, the same way wherever it stands: uses stay consistent, so that the rules of the ops get their turn."""
    found = sorted(set(re.findall(TENSOR, text)))
    if not found:
        return None
    before = random.choice(found)
    after = random.choice([size, element, lower_rank, higher_rank])(random, before)
    return after and text.replace(before, after)


MUTATIONS = [size, lower_rank, higher_rank, element, number, number, number, fewer_numbers, more_numbers, attribute_gone,
             last_attribute_gone, truth, word, operand_gone, operand, one_type, two_types] + 5 * [type_everywhere]


def mutate(random, text):
    """A changed text, or None when ten tries change nothing."""
    for _ in range(10):
        changed = random.choice(MUTATIONS)(random, text)
        if changed and changed != text:
            return changed
    return None
