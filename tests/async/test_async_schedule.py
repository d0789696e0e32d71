"""latency-hiding-scheduler and explain("async"), by their own model of time."""
import pathlib
import re
import sys

import pytest

import xlac

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))
import async_schedule  # noqa: E402


def report(module, **model):
    return module.explain("async", **model).data["computations"][-1]


def lines(module):
    return [line.strip() for line in module.to_text().split("ENTRY")[1].split("\n")]


@pytest.mark.parametrize("kind", ["copy", "generic"])
@pytest.mark.parametrize("n", [64, 256, 1024])
def test_a_pipeline_hides_what_the_order_by_hand_hides(kind, n):
    assert async_schedule.share(16, n, kind) >= 0.8


def test_copies_longer_than_the_work_between():
    """Then the lane is what counts, and no order hides more than all the work there is."""
    naive = xlac.parse(async_schedule.pipeline(16, 64, False)).run("latency-hiding-scheduler{link-gigabytes=1 copies=3}")
    by_hand = xlac.parse(async_schedule.pipeline(16, 64, True))
    hidden = [c["work"] - c["exposed"] for c in (report(m, link_gigabytes=1) for m in (naive, by_hand))]
    assert hidden[0] >= 0.8 * hidden[1] > 0


def in_flight(module, start="copy-start(", done="copy-done("):
    now = most = 0
    for line in lines(module):
        now += (start in line) - (done in line)
        most = max(most, now)
    return most


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_limits_by_lane(limit):
    m = xlac.parse(async_schedule.pipeline(16, 64, False))
    assert in_flight(m.run(f"latency-hiding-scheduler{{copies={limit} memory-percent=0}}")) == limit
    g = xlac.parse(async_schedule.pipeline(16, 64, False, "generic"))
    assert in_flight(g.run(f"latency-hiding-scheduler{{in-flight={limit} memory-percent=0}}"), "negate-start", "negate-done") == limit


WIDE = """HloModule m, is_scheduled=true
ENTRY e {
  x = f32[1024] parameter(0)
%s
  ROOT r = f32[1024] add(a0, a%d)
}
"""


def wide(n):
    """Copies that could all be in flight at once, each of which holds memory until it is used."""
    body = []
    for i in range(n):
        body += [f"  st{i} = (f32[1024], f32[1024], u32[]) copy-start(x)", f"  d{i} = f32[1024] copy-done(st{i})",
                 f"  a{i} = f32[1024] {f'add(a{i - 1}, d{i})' if i else 'sine(d0)'}"]
    return xlac.parse(WIDE % ("\n".join(body), n - 1))


def peak(module):
    """4 KiB arrays alive at a time."""
    uses, alive, most = {}, 0, 0
    body = [line for line in lines(module) if " = " in line and "parameter" not in line]
    for line in body:
        for name in re.findall(r"%([\w.-]+)", line.split(" = ", 1)[1]):
            uses[name] = uses.get(name, 0) + 1
    for line in body:
        name = re.match(r"(?:ROOT )?%([\w.-]+)", line)[1]
        alive += "copy-done" not in line  # whose memory is the start's
        most = max(most, alive)
        for operand in set(re.findall(r"%([\w.-]+)", line.split(" = ", 1)[1])):
            uses[operand] -= line.count(f"%{operand},") + line.count(f"%{operand})")
            alive -= uses[operand] == 0 and operand != "x" and not operand.startswith("st")
        assert name
    return most


def test_memory_is_bounded():
    m = wide(30)
    before = peak(m)
    free, bound = (peak(m.run(f"latency-hiding-scheduler{{copies=100 memory-percent={p}}}")) for p in (0, 150))
    assert free > 2 * before and bound <= 1.5 * before
    assert peak(m.run("latency-hiding-scheduler{copies=100 memory-percent=100}")) <= before
    big = 1 << 20
    assert peak(m.run(f"latency-hiding-scheduler{{copies=100 memory-percent=100 memory-bytes={big}}}")) == free


def test_starts_move_up_and_dones_down():
    m = xlac.parse("""HloModule m
ENTRY e {
  x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  a = f32[64,64] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  st = ((f32[64,64]), f32[64,64], u32[]) sine-start(x)
  u = ((f32[64,64]), f32[64,64], u32[]) sine-update(st)
  d = f32[64,64] sine-done(u)
  b = f32[64,64] cosine(a)
  c = f32[64,64] add(b, b)
  ROOT r = f32[64,64] add(d, c)
}
""").run("latency-hiding-scheduler")
    m.verify()
    names = re.findall(r"%(\w+) = ", m.to_text().split("ENTRY")[1])
    order = {name: i for i, name in enumerate(names)}
    assert order["st"] < order["a"] < order["u"] < order["d"] == order["r"] - 1 and order["c"] < order["d"]
    assert "is_scheduled=true" in m.to_text().split("\n")[0]


def test_effects_keep_their_order():
    m = xlac.parse("""HloModule m
ENTRY e {
  a = u64[2] rng-get-and-update-state(), delta=1
  x = f32[512,512] parameter(0)
  b = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = u64[2] rng-get-and-update-state(), delta=2, control-predecessors={b}
  ROOT r = (u64[2], u64[2], f32[512,512]) tuple(a, c, b)
}
""")
    text = m.run("latency-hiding-scheduler").to_text()
    assert text.index("delta=1") < text.index("delta=2")


def test_blocked_starts_never_deadlock():
    """The only chain in flight waits, by a control edge, for one that has no place."""
    m = xlac.parse("""HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  st0 = (f32[4], f32[4], u32[]) copy-start(x)
  st5 = (f32[4], f32[4], u32[]) copy-start(x), control-predecessors={st0}
  d5 = f32[4] copy-done(st5)
  d0 = f32[4] copy-done(st0), control-predecessors={d5}
  ROOT r = f32[4] add(d0, d5)
}
""").run("latency-hiding-scheduler{copies=1}")
    m.verify()


def test_the_same_order_every_time():
    m = xlac.parse(async_schedule.big(3000, seed=3))
    first = m.run("latency-hiding-scheduler")
    first.verify()
    assert m.run("latency-hiding-scheduler").to_text() == first.to_text()
    before, after = report(m), report(first)
    assert after["exposed"] < 0.5 * before["exposed"] and after["makespan"] < before["makespan"]


def test_a_schedule_is_never_made_slower():
    m = xlac.parse(async_schedule.pipeline(16, 256, True))
    assert report(m.run("latency-hiding-scheduler{memory-percent=100}"))["makespan"] <= report(m)["makespan"]


# --- explain ---

LATE = """HloModule m, is_scheduled=true
ENTRY e {
  x = f32[512,512] parameter(0)
  a = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  st = (f32[512,512], f32[512,512], u32[]) copy-start(x)
  s2 = ((f32[512,512]), f32[512,512], u32[]) sine-start(x), async_execution_thread="lane"
  d = f32[512,512] copy-done(st)
  b = f32[512,512] add(a, d)
  d2 = f32[512,512] sine-done(s2)
  ROOT r = f32[512,512] add(b, d2)
}
"""


def test_what_an_earlier_start_would_need():
    text = xlac.parse(LATE.replace("s2", "st2")).explain("async")
    copy, sine = text.data["computations"][0]["chains"]
    assert (copy["op"], copy["lane"], copy["start"], copy["done"], copy["line"]) == ("copy-start", "copies", "st", "d", 5)
    assert (sine["op"], sine["lane"], sine["needs"], sine["reader"]) == ("sine", "lane", "x", "r")
    assert copy["exposed"] == copy["length"] > 0 and copy["issued"] > 5e6 and copy["ready"] == 0
    assert sine["exposed"] < sine["length"], "the wait for the copy hides some of it"
    assert "earlier, after x, which would hide" in text
    better = xlac.parse(LATE.replace("s2", "st2")).run("latency-hiding-scheduler").explain("async")
    assert better.data["computations"][0]["exposed"] == 0 and "hidden, with" in better


def test_busy_lanes_and_models():
    m = xlac.parse(async_schedule.pipeline(3, 64, False)).run("latency-hiding-scheduler{link-gigabytes=1}")
    text = m.explain("async", link_gigabytes=1)
    assert "its lane is busy with" in text
    assert text.data["computations"][0]["exposed"] > m.explain("async", link_gigabytes=1000).data["computations"][0]["exposed"]


def test_explaining_what_has_no_chains_and_what_is_unknown():
    m = xlac.parse("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }")
    assert "no async ops" in m.explain()
    with pytest.raises(xlac.Error, match="explain knows no 'nothing'"):
        m.explain("nothing")
    loose = xlac.parse(LATE.replace("s2", "st2").replace(", is_scheduled=true", ""))
    assert loose.explain("async").endswith("latency-hiding-scheduler makes a better one")
