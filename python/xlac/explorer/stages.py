"""The states of a program on its way through the compiler, as numbers of lines: what a stage leaves alone takes no room."""
from .. import _core
from ..errors import Error
from .align import align

MOST_OPS_BY_PASS = 20_000  # above, only what goes in and comes out
# From a program with shardings to that of each device, with its collectives.
PARTITIONING = ("sdy-propagation-pipeline,sdy-insert-explicit-reshards{enable-full-version=true},sdy-reshard-to-collectives,"
                "sdy-convert-global-to-local,sdy-drop-sharding-and-mesh")


def is_sharded(module):
    return module.form == "mlir" and "sdy." in module.to_text()


class Texts:
    """Lines, each once, and the stages that are made of them."""

    def __init__(self):
        self.lines, self.numbers, self.stages = [], {}, []

    def add(self, name, text):
        """A stage that changed nothing is kept as that."""
        stage = []
        for line in text.rstrip("\n").split("\n"):
            number = self.numbers.get(line)
            if number is None:
                number = self.numbers[line] = len(self.lines)
                self.lines.append(line)
            stage.append(number)
        same = bool(self.stages) and self.stages[-1]["lines"] == stage
        self.stages.append({"name": name, "lines": stage, "same": same})

    def json(self):
        return {"lines": self.lines, "stages": self.stages}


def of(given, executable, text, how, passes):
    """The program as given, as translated, after each pass, and as it runs. The last is `text`."""
    texts = Texts()
    if given is not None:
        texts.add("as given", given.to_text(elide_large_constants=True))
    if given is not None and passes and given.stats()["ops"] <= MOST_OPS_BY_PASS:
        if executable is None or "devices" in how:
            partitioning(texts, given)
        if executable is not None:
            states = by_pass(given, executable, how)
            for (name, _), lines in zip(states, align([state.rstrip("\n").split("\n") for _, state in states], text.rstrip("\n").split("\n"))):
                texts.add(name, "\n".join(lines))
    texts.add("as it runs" if executable is not None else "as HLO", text)
    return texts.json()


def partitioning(texts, given):
    """What the passes make of shardings over several devices."""
    try:
        if is_sharded(given):
            given.run(PARTITIONING, after=lambda name, state: texts.add(name, state.to_text(elide_large_constants=True)))
    except Error:
        pass  # the page says why the program could not be compiled


def by_pass(given, executable, how):
    """[(pass, what it leaves)]: runs again the passes that the compilation ran."""
    names, states = ",".join(name for name, _ in executable.timings.by_pass), []

    def keep(name, state):
        states.append((name, state.to_text(elide_large_constants=True)))

    try:
        prepared = prepared_module(given, how)
        keep("prepared", prepared)
        if names:
            prepared.run(names, after=keep)
    except Error:
        pass  # what was compiled can be shown without the way there
    return states


def prepared_module(given, how):
    """What the passes begin with. Ops of CHLO have no HLO text; then what the program is in HLO form comes near."""
    from .. import compile_stage

    try:
        return _core.parse(compile_stage(given, "prepared", **how), format="hlo")
    except Error:
        return given.to_hlo() if given.form == "mlir" else given.clone()
