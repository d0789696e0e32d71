"""The values of a StableHLO module by name. Names are unique in a function but for regions side by side, which use them again: "%3" is
a value of the main function, "@f/%3" one of the function @f."""
import difflib
import json
import re

from .codes import Code
from .errors import ArgumentError
from .mesh import Mesh, Sharding

HINT = 'values are called "%3" or "%arg0" as in the text of the module, "@f/%3" in a function other than main, or "line 12"'


def listed(module):
    """What the C core says of a module's values and of the collectives among them."""
    return json.loads(module._reshards())


def meshes(module):
    """A module's meshes: Mesh by name."""
    return {name: Mesh.parse(text) for name, text in re.findall(r"sdy\.mesh @([\w$.]+) = (<\[.*?\](?:, device_ids=\[.*?\])?>)", module.to_text())}


def read_sharding(text, known):
    """The Sharding that a text says, on one of the meshes; None stays None."""
    mesh = re.match(r"#sdy\.sharding<@([\w$.]+)", text or "")
    return text and Sharding.parse(text, known.get(mesh[1]) if mesh else None)


class Values:
    """`rows`: as csrc/shard/explain/explain.h describes them, in the order of the text. `of`: what the text is, for messages."""

    def __init__(self, rows, of):
        self.rows, self.of, self.by_name = rows, of, {}
        for i, _row in enumerate(rows):
            self.by_name.setdefault(self.plain(i), []).append(i)

    def plain(self, i):
        row = self.rows[i]
        return row["name"] if row["main"] else f"@{row['function']}/{row['name']}"

    def name(self, i):
        """What tells the value from all others: its name, and the line where that is another one's too."""
        plain = self.plain(i)
        return plain if len(self.by_name[plain]) == 1 else f"{plain} (line {self.rows[i]['line']})"

    def unique(self):
        """(name, place) of those that have a name of their own."""
        return ((name, places[0]) for name, places in self.by_name.items() if len(places) == 1)

    def find(self, text):
        """The place of a value: by name, by name and line as `name` gives it, or by "line 12" and "line 12#1" of an op's results. Raises
        Error where there is none, or more than one."""
        words = text.split()
        line = words[-1].strip("()") if len(words) > 1 and words[-2].strip("(") == "line" else None
        number, _, index = (line or "").partition("#")
        if line is None:
            return self._one(text, self._named(text))
        if not number.isdigit() or (index and not index.isdigit()):
            raise ArgumentError(f"{text!r} names no value", Code.BAD_ARGUMENT, hint=HINT)
        if len(words) == 3:
            return self._one(text, [i for i in self._named(words[0]) if self.rows[i]["line"] == int(number)])
        return self._of_line(text, int(number), int(index or 0))

    def _named(self, name):
        if name.startswith("@") or name in self.by_name:
            return self.by_name.get(name, [])
        return [i for i, row in enumerate(self.rows) if row["name"] == name]

    def _one(self, text, found):
        if len(found) == 1:
            return found[0]
        if not found:
            near = difflib.get_close_matches(text, self.by_name, 3, 0.5)
            raise ArgumentError(f"{self.of} has no value {text!r}" + (f"; near it are {', '.join(near)}" if near else ""), Code.BAD_ARGUMENT,
                                hint=HINT)
        raise ArgumentError(f"{text!r} is the name of {len(found)} values of {self.of}: {self._some(found)}", Code.BAD_ARGUMENT,
                    hint="say which by the whole name, or by its line")

    def _some(self, found):
        return ", ".join(self.name(i) for i in found[:8]) + (", ..." if len(found) > 8 else "")

    def of_line(self, line):
        """The results of ops that begin in a line, without those of regions inside."""
        found = [i for i, row in enumerate(self.rows) if row["line"] == line and row["opcode"] != "sdy.data_flow_edge"]
        least = min((self.rows[i]["depth"] for i in found), default=0)
        return [i for i in found if self.rows[i]["depth"] == least]

    def _of_line(self, text, line, index):
        found = self.of_line(line)
        if not found:
            raise ArgumentError(f"no value of {self.of} is defined in line {line}", Code.BAD_ARGUMENT,
                                hint="lines are those of the program as it was read")
        same = [i for i in found if self.rows[i]["index"] == index]
        if not same:
            raise ArgumentError(f"the op in line {line} has {len(found)} results, none is {index}", Code.BAD_ARGUMENT,
                                hint=f'such as "line {line}#0"')
        if len(same) > 1:
            raise ArgumentError(f"{len(same)} values of {self.of} are defined in line {line}: {self._some(same)}", Code.BAD_ARGUMENT,
                                hint="say which by its name")
        return same[0]


def closed(sharding):
    """The text of a sharding as it is when propagation is over: no dimension is open, none has a priority."""
    if sharding is None:
        return None
    return re.sub(r"\{([^{}]*)\}p\d+", r"{\1}", re.sub(r"(?:, )?\?\}", "}", sharding))


def _says_nothing(sharding):
    return sharding is None or '"' not in sharding.split("[", 1)[1]


def same_sharding(a, b):
    return closed(a) == closed(b) or (_says_nothing(a) and _says_nothing(b))


BECOMES = {("sdy.named_computation", "func.call"), ("sdy.sharding_constraint", "sdy.reshard"), ("block argument", "argument"),
           ("sdy.constant", "stablehlo.constant")}


def pairs_of(mine, theirs, a, b):
    """Of values that come from one place of the text, which is which: those of one opcode in order, then what another op becomes of."""
    left, found = list(theirs), []
    for may in (lambda x, y: x == y, lambda x, y: (x, y) in BECOMES):
        for i in [i for i in mine if i not in dict(found)]:
            j = next((j for j in left if may(a[i]["opcode"], b[j]["opcode"])), None)
            if j is not None:
                found.append((i, j))
                left.remove(j)
    return found


class Match:
    """Which value of the propagated program is which in the module right after propagation, where calls are copies of what they call.
    Both come from one text: a value is told by the place of its op there, and a function by its values. Of several copies, one stands for
    the function: that whose shardings are most like the function's."""

    def __init__(self, traced, program):
        self.traced, self.program = traced, program
        copies, functions = self._scopes(traced, "inside"), self._scopes(program)
        scores = {}  # (copy, function): values that match, and those of the same sharding
        self._found = {}
        for copy, places in copies.items():
            for function, others in functions.items():
                if places.keys() & others.keys():
                    found = [p for key in places if key in others for p in pairs_of(places[key], others[key], traced, program)]
                    equal = sum(same_sharding(traced[i]["sharding"], program[j]["sharding"]) for i, j in found)
                    self._found[copy, function], scores[copy, function] = found, (equal, len(found))
        self.to_program, self.to_traced = {}, {}
        self._fill(self.to_program, scores, 0)
        self._fill(self.to_traced, scores, 1)

    @staticmethod
    def _scopes(rows, inside=None):
        scopes = {}
        for i, row in enumerate(rows):
            if row["opcode"] != "sdy.data_flow_edge" and row["line"]:
                places = scopes.setdefault((row["function"], row[inside] if inside else 0), {})
                places.setdefault((row["line"], row["col"], row["index"]), []).append(i)
        return scopes

    def _fill(self, to, scores, side):
        """For every copy its best function, or for every function its best copy."""
        for (copy, function), _ in sorted(scores.items(), key=lambda item: item[1], reverse=True):
            for pair in self._found[copy, function]:
                to.setdefault(pair[side], pair[1 - side])
