"""python -m xlac"""
import sys

from .cli import main

sys.exit(main())
