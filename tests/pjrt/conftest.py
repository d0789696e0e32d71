import pathlib

import pytest
import xlac
from plugin import Plugin

LIBRARY = pathlib.Path(xlac.__file__).parent / "_pjrt.so"


@pytest.fixture(scope="session")
def p():
    return Plugin(LIBRARY)


@pytest.fixture
def client(p):
    made = p.client()
    yield made
    p.Client_Destroy(client=made)
