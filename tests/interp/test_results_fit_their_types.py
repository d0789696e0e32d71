"""What an op gives is of its type's elements and sizes, or the run fails: nobody reads or writes past the end of a buffer. XLA's verifier lets
collectives through whose result is that of more participants than there are."""
import numpy as np
import pytest

import xlac

PROGRAMS = {
    "all-gather": "HloModule m\nENTRY e {\n  a = f32[8] parameter(0)\n  ROOT s = f32[16] all-gather(a), replica_groups=GROUPS, dimensions={0}\n}",
    "all-gather-start": "HloModule m\nENTRY e {\n  a = f32[8] parameter(0)\n  s = (f32[8], f32[16]) all-gather-start(a), replica_groups=GROUPS, "
                        "dimensions={0}\n  ROOT d = f32[16] all-gather-done(s)\n}",
    "reduce-scatter": "HloModule m\nadd {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\nENTRY e {\n"
                      "  a = f32[8] parameter(0)\n  ROOT s = f32[4] reduce-scatter(a), replica_groups=GROUPS, dimensions={0}, to_apply=add\n}",
}


@pytest.mark.parametrize("groups", ["{{0}}", "{}"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_collective_of_one_participant_that_claims_more_fails_in_all_engines(name, groups):
    module = xlac.parse(PROGRAMS[name].replace("GROUPS", groups))
    module.verify(xla_compat=True)
    a = np.ones(8, np.float32)
    executable = xlac.compile(module)
    for run in (lambda: xlac.interpret(module, a), lambda: executable(a), lambda: xlac.compile(module, passes=False)(a),
                lambda: xlac.load(executable.serialize())(a)):
        with pytest.raises(xlac.Error, match=r"run-time dimensions f32\[8\], but its type is \(?.*f32\[(16|4)\]"):
            run()
