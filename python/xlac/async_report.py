"""Module.explain("async"): async chains, and how much of their time other work hides, by the model of csrc/passes/async/model.c."""
import json

from .report import Report, seconds_text


def time_text(ns):
    return seconds_text(ns * 1e-9) if ns else "0"


class AsyncReport(Report):
    """Text, with `.data`: what it was made of."""

    data = None


def advice(chain):
    """What would let the start go earlier, or make the wait shorter otherwise."""
    early = chain["issued"] - chain["ready"]
    if chain["behind"]:
        return f"its lane is busy with {chain['behind']} until {time_text(chain['begins'])}: a lane of its own would help"
    if early >= 1:
        after = f"after {chain['needs']}" if chain["needs"] else "at the beginning"
        gain = min(early, chain["exposed"])
        return f"the start could stand {time_text(early)} earlier, {after}, which would hide {time_text(gain)} more"
    later = chain["read"] - chain["reached"] - chain["exposed"]
    if later >= 1:
        return f"the done could stand {time_text(later)} later, before {chain['reader'] or 'the end'}"
    if chain["needs"] and chain["issued"] >= 1:
        return f"the start waits for {chain['needs']}, and {chain['reader'] or 'the end'} for the done: work that needs neither must come between"
    return f"it starts at the beginning already, and {chain['reader'] or 'the end'} needs it: work that does not must come between"


def chain_lines(chain):
    updates = f", {chain['updates']} update{'s' if chain['updates'] > 1 else ''}" if chain["updates"] else ""
    hidden = chain["length"] - chain["exposed"]
    share = 100 * max(hidden, 0) / chain["length"] if chain["length"] else 100
    yield (f"  {chain['start']} .. {chain['done']}: {chain['op']} on {chain['lane']}, {time_text(chain['length'])}{updates}; "
           f"issued at {time_text(chain['issued'])}, over at {time_text(chain['ends'])}")
    if chain["exposed"] > 0:
        yield f"    exposed {time_text(chain['exposed'])} ({share:.0f}% hidden): {advice(chain)}"
    else:
        yield f"    hidden, with {time_text(chain['reached'] - chain['ends'])} to spare"


def computation_lines(c):
    share = 100 * (1 - c["exposed"] / c["work"]) if c["work"] else 100
    yield (f"{c['name']}: {len(c['chains'])} chain{'s' if len(c['chains']) != 1 else ''} among {c['ops']} ops, "
           f"{time_text(c['makespan'])} in all; {time_text(c['work'])} on lanes, {time_text(c['exposed'])} of it exposed "
           f"({max(share, 0):.0f}% hidden)")
    for chain in c["chains"]:
        yield from chain_lines(chain)


def explain(module, *, gigaflops=0, memory_gigabytes=0, link_gigabytes=0):
    data = json.loads(module._async_report(gigaflops, memory_gigabytes, link_gigabytes))
    lines = [line for c in data["computations"] for line in computation_lines(c)]
    if not lines:
        lines = ["no async ops: async-wrap and async-collective-creator make some"]
    elif not data["scheduled"]:
        lines.append("not scheduled: the order is that of printing; latency-hiding-scheduler makes a better one")
    report = AsyncReport("\n".join(lines))
    report.data = data
    return report
