"""Random modules with random aliases, donors and donation patterns: the interpreter's results, lent arguments untouched, given ones in
the memory of the results that take them, and every plan proved. XLAC_RANDOM_DONATIONS=100000 for the long run, from seed
XLAC_RANDOM_DONATIONS_FROM on."""
import os

from . import donating

COUNT, FIRST = int(os.environ.get("XLAC_RANDOM_DONATIONS", 60)), int(os.environ.get("XLAC_RANDOM_DONATIONS_FROM", 0))


def test_random_donations():
    for seed in range(FIRST, FIRST + COUNT):
        donating.Case(seed).check(threads=1 + seed % 2, fuse=seed % 5 != 0, passes=seed % 7 != 0)
