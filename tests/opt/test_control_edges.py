"""Control edges: what passes do to them, in time that grows as the program does."""
import time

import pytest

import xlac

CALLEE = "HloModule m\nf {\n  p = f32[] parameter(0)\n  ROOT s = f32[] sine(p)\n}\nENTRY e {\n  x = f32[] parameter(0)\n"


def program(body, results, head=CALLEE):
    return f"{head}{body}  ROOT t = ({', '.join(['f32[]'] * len(results))}) tuple({', '.join(results)})\n}}\n"


def one_waits_for_each(n):
    body = "".join(f"  c{i}_ = f32[] call(x), to_apply=f\n  w{i}_ = f32[] negate(x), control-predecessors={{c{i}_}}\n" for i in range(n))
    return program(body, [f"{k}{i}_" for i in range(n) for k in "cw"])


def one_waits_for_all(n):
    body = "".join(f"  c{i}_ = f32[] call(x), to_apply=f\n" for i in range(n))
    names = ", ".join(f"c{i}_" for i in range(n))
    return program(f"{body}  w_ = f32[] negate(x), control-predecessors={{{names}}}\n", ["w_"])


def all_wait_for_one(n):
    body = "".join(f"  w{i}_ = f32[] negate(x), control-predecessors={{c_}}\n" for i in range(n))
    return program(f"  c_ = f32[] call(x), to_apply=f\n{body}", [f"w{i}_" for i in range(n)])


def dead_ones_wait(n):
    body = "".join(f"  d{i}_ = f32[] cosine(x)\n  e{i}_ = f32[] sine(x), control-predecessors={{d{i}_}}\n" for i in range(n))
    return program(f"  y_ = f32[] negate(x)\n{body}  w_ = f32[] negate(x), control-predecessors={{y_}}\n", ["w_"])


def copies_wait(n):
    body = "".join(f"  d{i}_ = f32[] cosine(x)\n  c{i}_ = f32[] copy(x), control-predecessors={{d{i}_}}\n"
                   f"  e{i}_ = f32[] sine(x), control-predecessors={{c{i}_}}\n" for i in range(n))
    return program(body, [f"{k}{i}_" for i in range(n) for k in "dce"])


SHAPES = [(one_waits_for_each, "inline-calls"), (one_waits_for_all, "inline-calls"), (all_wait_for_one, "inline-calls"),
          (dead_ones_wait, "dce"), (copies_wait, "async-wrap{ops=copy}"), (copies_wait, "async-wrap{ops=copy},async-unwrap")]


def least_cpu(module, passes):
    def once():
        copy = module.clone()
        start = time.process_time()
        copy.run(passes, in_place=True)
        return time.process_time() - start
    return min(once() for _ in range(3))


@pytest.mark.parametrize("shape, passes", SHAPES, ids=lambda x: getattr(x, "__name__", x))
def test_time_grows_as_the_program(shape, passes):
    few, many = (xlac.verify(shape(n)) for n in (1500, 15000))
    assert least_cpu(many, passes) < 50 * least_cpu(few, passes) + 0.02  # ten times as many ops: a hundred where quadratic


@pytest.mark.parametrize("shape, passes", SHAPES, ids=lambda x: getattr(x, "__name__", x))
def test_edges_stay_whole(shape, passes):
    after = xlac.verify(shape(3)).run(passes, verify_each=True)
    again = xlac.parse(after.to_text())
    assert again.to_text() == after.to_text()
    if passes != "dce":
        assert "control-predecessors" in after.to_text()


def test_who_waited_for_a_call_waits_for_its_last_ops_in_its_place():
    text = program("  a_ = f32[] cosine(x)\n  c_ = f32[] call(x), to_apply=f\n  b_ = f32[] tan(x)\n"
                   "  w_ = f32[] negate(x), control-predecessors={a_, c_, b_}\n", ["w_"])
    waits = xlac.parse(text).run("inline-calls").find("w_").control_predecessors
    assert [op.opcode for op in waits] == ["cosine", "tan", "sine"]


def test_an_op_that_goes_takes_its_edges_with_it():
    m = xlac.parse(program("  a_ = f32[] cosine(x)\n  b_ = f32[] tan(x), control-predecessors={a_}\n"
                           "  w_ = f32[] negate(x), control-predecessors={a_, b_}\n", ["w_"]))
    m.find("b_").remove()
    assert [op.name for op in m.find("w_").control_predecessors] == ["a_"]
    m.find("a_").remove()
    assert m.find("w_").control_predecessors == []
    m.verify()


def test_edges_given_anew_take_the_place_of_the_old_ones():
    m = xlac.parse(program("  a_ = f32[] cosine(x)\n  b_ = f32[] tan(x)\n  w_ = f32[] negate(x), control-predecessors={a_}\n", ["w_"]))
    m.find("w_").attributes["control-predecessors"] = "{b_, a_, b_}"
    assert [op.name for op in m.find("w_").control_predecessors] == ["b_", "a_"]
    with pytest.raises(xlac.Error):
        m.find("a_").attributes["control-predecessors"] = "{w_}"
    assert m.find("a_").control_predecessors == []
    del m.find("w_").attributes["control-predecessors"]
    assert m.find("w_").control_predecessors == []
    m.find("a_").remove()


def test_a_copy_has_edges_of_its_own():
    m = xlac.parse(program("  a_ = f32[] cosine(x)\n  w_ = f32[] negate(x), control-predecessors={a_}\n", ["w_"]))
    copy = m.clone()
    m.find("a_").remove()
    assert [op.name for op in copy.find("w_").control_predecessors] == ["a_"]
