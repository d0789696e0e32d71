"""A program of every collective, for tests: in one process, and in the ranks that they start."""
import hashlib
import sys

import numpy as np

import xlac

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
MAX = "most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }\n"
# By name: (element type and shape of the result, the op); x and w are different on each device.
OPS = {
    "sum": ("f32[6,8]", "all-reduce(x), channel_id={c}, replica_groups={{{{0,1,2,3}}}}, use_global_device_ids=true, to_apply=add"),
    "pairs": ("f32[6,8]", "all-reduce(x), channel_id={c}, replica_groups={{{{0,1}},{{2,3}}}}, use_global_device_ids=true, to_apply=add"),
    "crossed": ("f32[6,8]", "all-reduce(x), channel_id={c}, replica_groups={{{{2,0}},{{3,1}}}}, use_global_device_ids=true, to_apply=most"),
    "large": ("f32[300,8001]", "all-reduce(w), channel_id={c}, replica_groups={{{{3,1,0,2}}}}, use_global_device_ids=true, to_apply=add"),
    "both": ("(f32[6,8], f32[300,8001])", "all-reduce(x, w), channel_id={c}, replica_groups={{{{0,1,2,3}}}}, use_global_device_ids=true, to_apply=add"),
    "scatter": ("f32[6,2]", "reduce-scatter(x), channel_id={c}, replica_groups={{{{0,1,2,3}}}}, use_global_device_ids=true, dimensions={{1}}, to_apply=add"),
    "scatter_pairs": ("f32[3,8]", "reduce-scatter(x), channel_id={c}, replica_groups={{{{3,0}},{{1,2}}}}, use_global_device_ids=true, dimensions={{0}}, to_apply=add"),
    "gather": ("f32[6,32]", "all-gather(x), channel_id={c}, replica_groups={{{{0,1,2,3}}}}, use_global_device_ids=true, dimensions={{1}}"),
    "gather_crossed": ("f32[12,8]", "all-gather(x), channel_id={c}, replica_groups={{{{2,0}},{{1,3}}}}, use_global_device_ids=true, dimensions={{0}}"),
    "exchange": ("f32[6,8]", "all-to-all(x), channel_id={c}, replica_groups={{{{0,1,2,3}}}}, dimensions={{1}}"),
    "each": ("(f32[6,8], f32[6,8])", "all-to-all(x, y), channel_id={c}, replica_groups={{{{0,2}},{{3,1}}}}"),
    "permute": ("f32[6,8]", "collective-permute(x), channel_id={c}, source_target_pairs={{{{0,1}},{{1,2}},{{2,3}}}}"),
    "broadcast": ("f32[6,8]", "collective-broadcast(x), channel_id={c}, replica_groups={{{{2,0,1,3}}}}"),
    "ragged": ("f32[8,3]", "ragged-all-to-all(rin, rout, offs, sizes, outs, sizes), channel_id={c}, replica_groups={{{{0,1,2,3}}}}"),
    "bits": ("pred[6,8]", "all-gather(p), channel_id={c}, replica_groups={{{{0}},{{1}},{{2}},{{3}}}}, use_global_device_ids=true, dimensions={{0}}"),
    "nothing": ("f32[0,8]", "all-reduce(none), channel_id={c}, replica_groups={{{{0,1,2,3}}}}, use_global_device_ids=true, to_apply=add"),
}


def program(names=None):
    """One module of those ops; the root is a tuple of all their results."""
    lines, results, types = [], [], []
    for c, name in enumerate(names or OPS, 1):
        kind, op = OPS[name]
        lines.append(f"  {name} = {kind} {op.format(c=c)}")
        if kind.startswith("("):
            parts = [part.strip() + ("]" if not part.strip().endswith("]") else "") for part in kind[1:-1].split("],")]
            for i, part in enumerate(parts):
                lines.append(f"  {name}_{i} = {part} get-tuple-element({name}), index={i}")
                results.append(f"{name}_{i}")
                types.append(part)
        else:
            results.append(name)
            types.append(kind)
    return f"""HloModule collectives, num_partitions=4
{ADD}{MAX}ENTRY e {{ v = f32[6,8] parameter(0) u = f32[300,8001] parameter(1)
  id = u32[] partition-id()
  f = f32[] convert(id)
  o = f32[] constant(1.7)
  g = f32[] add(f, o)
  gx = f32[6,8] broadcast(g), dimensions={{}}
  gw = f32[300,8001] broadcast(g), dimensions={{}}
  x = f32[6,8] multiply(v, gx)
  y = f32[6,8] add(v, gx)
  w = f32[300,8001] multiply(u, gw)
  p = pred[6,8] compare(x, y), direction=GT
  none = f32[0,8] constant({{}})
  rin = f32[8,3] slice(w), slice={{[0:8], [0:3]}}
  zero = f32[] constant(0)
  rout = f32[8,3] broadcast(zero), dimensions={{}}
  offs = s32[4] constant({{0, 2, 4, 6}})
  sizes = s32[4] constant({{2, 2, 2, 2}})
  s = s32[] convert(id)
  per = s32[] constant(2)
  mine = s32[] multiply(s, per)
  outs = s32[4] broadcast(mine), dimensions={{}}
{chr(10).join(lines)}
  ROOT all = ({", ".join(types)}) tuple({", ".join(results)}) }}"""


def digests(names=None, **options):
    """By device of this process: {place of the result: hash of its bytes}."""
    rng = np.random.default_rng(5)
    v, u = rng.standard_normal((6, 8), np.float32), rng.standard_normal((300, 8001), np.float32)
    exe = xlac.compile(xlac.parse(program(names)), devices=4, results="sharded", **options)
    found = {}
    for _ in range(2):
        for i, result in enumerate(exe(v, u)):
            for shard in result.shards:
                found[f"{shard.device}.{i}"] = hashlib.sha1(shard.data.numpy().tobytes()).hexdigest()[:12]
    return found


def main():
    for at, value in sorted(digests(device=sys.argv[1] if len(sys.argv) > 1 else "cpu").items()):
        print(at, value)
