"""Random programs of nested tuples, calls, branches, loops and async chains, all terminating, to run passes on."""
import random

ARRAY = "f32[2]"


def text_of(t):
    return t if isinstance(t, str) else "(" + ", ".join(map(text_of, t)) + ")"


class Program:
    def __init__(self, seed, scheduled=False):
        self.random = random.Random(seed)
        self.computations, self.functions, self.n = [], [], 0
        for _ in range(self.random.randint(0, 4)):
            self.function()
        body = self.computation([ARRAY, ARRAY], None, "ENTRY e")
        header = "HloModule m, is_scheduled=true" if scheduled else "HloModule m"
        self.text = "\n".join([header] + self.computations + [body])

    def fresh(self, stem="v"):
        self.n += 1
        return f"{stem}{self.n}"

    def type(self, depth=0):
        if depth == 3 or self.random.random() < 0.45:
            return ARRAY
        return tuple(self.type(depth + 1) for _ in range(self.random.randint(0 if depth else 1, 3)))

    def function(self):
        name = self.fresh("fn")
        params, result = [self.type() for _ in range(self.random.randint(1, 2))], self.type()
        self.computations.append(self.computation(params, result, name))
        self.functions.append((name, params, result))

    # --- one computation: a pool of (name, type) and lines ---

    def computation(self, params, result, title):
        lines, pool = [], []
        for i, t in enumerate(params):
            pool.append((self.emit(lines, t, f"parameter({i})"), t))
        for _ in range(self.random.randint(3, 12)):
            self.step(lines, pool)
        result = result if result is not None else self.type()
        root = self.make(lines, pool, result)
        lines.append(f"  ROOT {self.fresh()} = {text_of(result)} " + (
            f"add({root}, {root})" if result == ARRAY else f"opt-barrier({root})" if self.random.random() < 0.5 else
            "tuple(" + ", ".join(self.part(lines, root, result, i) for i in range(len(result))) + ")"))
        return title + " {\n" + "\n".join(lines) + "\n}"

    def emit(self, lines, t, rest):
        name = self.fresh()
        lines.append(f"  {name} = {text_of(t)} {rest}")
        return name

    def part(self, lines, name, t, i):
        return self.emit(lines, t[i], f"get-tuple-element({name}), index={i}")

    def make(self, lines, pool, t):
        """A value of type t: one there is, or a new one."""
        same = [name for name, u in pool if u == t]
        if same and self.random.random() < 0.8:
            return self.random.choice(same)
        if t == ARRAY:
            if not same:
                zero = self.emit(lines, "f32[]", "constant(1)")
                return self.emit(lines, ARRAY, f"broadcast({zero}), dimensions={{}}")
            return self.emit(lines, ARRAY, f"negate({self.random.choice(same)})")
        return self.emit(lines, t, "tuple(" + ", ".join(self.make(lines, pool, u) for u in t) + ")")

    def step(self, lines, pool):
        name = self.random.choice(["add", "tuple", "part", "part", "call", "branch", "loop", "async", "barrier"])
        made = getattr(self, "step_" + name)(lines, pool)
        if made:
            pool.append(made)

    def step_add(self, lines, pool):
        a, b = self.make(lines, pool, ARRAY), self.make(lines, pool, ARRAY)
        return self.emit(lines, ARRAY, f"{self.random.choice(['add', 'subtract', 'maximum'])}({a}, {b})"), ARRAY

    def step_tuple(self, lines, pool):
        t = self.type()
        return self.make(lines, pool, t), t

    def step_part(self, lines, pool):
        tuples = [(n, t) for n, t in pool if t != ARRAY and t]
        if not tuples:
            return None
        name, t = self.random.choice(tuples)
        i = self.random.randrange(len(t))
        return self.part(lines, name, t, i), t[i]

    def step_barrier(self, lines, pool):
        name, t = self.random.choice(pool)
        return self.emit(lines, t, f"opt-barrier({name})"), t

    def step_call(self, lines, pool):
        if not self.functions:
            return None
        name, params, result = self.random.choice(self.functions)
        args = ", ".join(self.make(lines, pool, t) for t in params)
        return self.emit(lines, result, f"call({args}), to_apply={name}"), result

    def step_branch(self, lines, pool):
        if len(self.computations) > 12:
            return None
        params, result = [self.type(), self.type()], self.type()
        names = [self.fresh("br") for _ in params]
        for n, p in zip(names, params):
            self.computations.append(self.computation([p], result, n))
        index = self.emit(lines, "s32[]", f"constant({self.random.randint(0, 2)})")
        args = ", ".join(self.make(lines, pool, t) for t in params)
        return self.emit(lines, result, f"conditional({index}, {args}), branch_computations={{{', '.join(names)}}}"), result

    def step_loop(self, lines, pool):
        if len(self.computations) > 12:
            return None
        state = self.type()
        whole, step, body, more = ("s32[]", state), *(self.fresh(s) for s in ("step", "body", "more"))
        whole_text = text_of(whole)
        self.computations.append(self.computation([state], state, step))
        self.computations.append(
            f"{body} {{\n  s = {whole_text} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  o = s32[] constant(1)\n"
            f"  j = s32[] add(i, o)\n  v = {text_of(state)} get-tuple-element(s), index=1\n"
            f"  w = {text_of(state)} call(v), to_apply={step}\n  ROOT r = {whole_text} tuple(j, w)\n}}")
        self.computations.append(
            f"{more} {{\n  s = {whole_text} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(3)\n"
            f"  ROOT c = pred[] compare(i, n), direction=LT\n}}")
        zero, start = self.emit(lines, "s32[]", "constant(0)"), self.make(lines, pool, state)
        init = self.emit(lines, whole, f"tuple({zero}, {start})")
        loop = self.emit(lines, whole, f"while({init}), condition={more}, body={body}")
        return self.part(lines, loop, whole, 1), state

    def step_async(self, lines, pool):
        if len(self.computations) > 12:
            return None
        t, name = self.type(), self.fresh("w")
        self.computations.append(f"{name} {{\n  {self.fresh()} = {text_of(t)} parameter(0)\n"
                                 f"  ROOT {self.fresh()} = {text_of(t)} opt-barrier(v{self.n - 1})\n}}")
        operand = self.make(lines, pool, t)
        start_type = ((t,), t, "u32[]")
        start = self.emit(lines, start_type, f"async-start({operand}), calls={name}")
        return self.emit(lines, t, f"async-done({start})"), t
