"""JAX's 60 sharded programs on ranks that mpiexec has started: every rank has the values of one device.

  mpiexec -n 2 python tests/spmd/jax_programs_of_ranks.py              # on 2, 4 and 8 devices, shared by the ranks
  mpiexec -n 4 python tests/spmd/jax_programs_of_ranks.py [FIRST STEP] # every STEP-th program from number FIRST on

Rank 0 prints a line a program; the exit status is 1 where a rank has found another value or an error."""
import collections
import sys

import numpy as np
import test_spmd_jax as one

import xlac


def answer(name, devices):
    """"right", or what is the matter on this rank."""
    row = one.rows()[name]
    try:
        exe = xlac.compile(xlac.parse(row["programs"][str(devices)], format="mlir"), devices=devices)
        one.check(one.results_of(exe, row), row, devices)
    except (xlac.Error, AssertionError) as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    return "right"


def main(first=0, step=1):
    xlac.distributed.init()
    rank, size = xlac.distributed.rank(), xlac.distributed.size()
    found = collections.Counter()
    for name in one.names()[first::step]:
        for devices in (n for n in (2, 4, 8) if n % size == 0):
            said = xlac.distributed.gather(answer(name, devices))
            wrong = [f"rank {r}: {text}" for r, text in enumerate(said) if text != "right"]
            found["wrong" if wrong else "right"] += 1
            if rank == 0:
                print(f"{name} on {devices} devices: {'; '.join(wrong) or 'right'}", flush=True)
    if rank == 0:
        print(f"{size} ranks: {found['right']} right, {found['wrong']} wrong", flush=True)
    return 1 if found["wrong"] or not found["right"] else 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main(*map(int, sys.argv[1:])))
