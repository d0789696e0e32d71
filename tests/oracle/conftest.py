import importlib.util
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.fixture(scope="session")
def xla():
    if importlib.util.find_spec("jaxlib") is None:
        pytest.skip("jaxlib is not installed")
    from xla import Xla
    worker = Xla()
    yield worker
    worker.close()
