"""Several processes, on one machine or on many, that run one program: each has a part of the devices.

    import xlac
    xlac.distributed.init()                                   # under mpiexec; or with coordinator=, processes=, rank=
    step = xlac.compile(lowered, devices=8, results="sharded")    # of two processes each runs four devices

All ranks compile the same programs and call them in the same order. Whole arrays that go in and come out are the same on all ranks; of a
ShardedBuffer each rank has the shards of its own devices. docs/distributed.md tells of it with an example."""
import atexit
import hashlib
import json
import os
import socket
import sys
import time

from . import _core
from .codes import Code
from .errors import ArgumentError, DeviceError

VERSION = 1  # of what processes say to each other
_RANK_NAMES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")


class _World:
    """What init has made."""

    def __init__(self, rank, names, network):
        self.rank, self.size, self.names, self.network, self.process = rank, len(names), names, network, os.getpid()


_world = None
_last_words = None


# --- for users ---

def init(coordinator=None, processes=None, rank=None, *, timeout=60.0):
    """Connects this process with the others. Every process calls it once, before it compiles.

    Parameters
    ----------
    coordinator : str, optional
        "host:port" of rank 0, which listens there. None: what XLAC_COORDINATOR says; else mpiexec has started the processes, and MPI (mpi4py, the
        extra xlac[mpi]) tells them of one another.
    processes, rank : int, optional
        How many there are, and which of them this one is, from 0. None: XLAC_PROCESSES and XLAC_RANK, or what MPI says.
    timeout : float
        Seconds to wait for the others.

    Raises
    ------
    DeviceError
        A rank is missing, there is no coordinator, or what is there belongs to another version or program.
    """
    global _world
    if _world is not None:
        raise ArgumentError("xlac.distributed.init has been called before", Code.BAD_ARGUMENT, hint="once a process; close() ends it")
    coordinator, processes, rank = _settings(coordinator, processes, rank)
    until = time.monotonic() + timeout
    if coordinator is None:
        world = _by_mpi(timeout, until)
    else:
        world = _by_sockets(coordinator, processes, rank, until, timeout)
    _world = world
    _watch_last_words()
    atexit.register(close)


def is_initialized():
    """Whether this process is one of several, or was started as one."""
    return _world is not None


def rank():
    """Which process this is, from 0; 0 without init."""
    return _world.rank if _world else 0


def size():
    """How many processes there are; 1 without init."""
    return _world.size if _world else 1


def names():
    """What errors call the ranks: "rank 1 (process 4711 on here)"."""
    return list(_world.names) if _world else []


def barrier():
    """Returns when all ranks have called it."""
    _exchange(b"")


def gather(x):
    """Everybody's x, in a list by rank: what JSON can hold, or bytes. Of a ShardedBuffer the whole array, on all ranks. All ranks call it."""
    from .sharded import ShardedBuffer

    if isinstance(x, ShardedBuffer):
        return x._gathered(_exchange) if _world else x.numpy()
    if isinstance(x, bytes):
        return _exchange(x)
    return [json.loads(part) for part in _exchange(json.dumps(x).encode())]


def close():
    """Leaves the others; who waits for this rank then gets an error. The end of the process does it, too."""
    global _world
    if _world is None or _world.process != os.getpid():
        return
    world, _world = _world, None
    _core._network_close(world.network, _last_words)


# --- for xlac.compile ---

def join(executable, module, options):
    """Makes an executable of many devices that of all ranks."""
    if _world is None:
        return
    _join(executable, module.name, (_text(module) + repr(options)).encode())


def join_loaded(executable, data):
    """The same for one that was serialized."""
    if _world is not None:
        _join(executable, executable.module.name, data)


def _join(executable, name, data):
    signature = ", ".join(f"{port.dtype}{list(port.shape)}" for port in executable.inputs if port.dtype is not None)
    digest = hashlib.blake2b(data, digest_size=8).hexdigest()
    _core._join(executable, _world.network, f"{name:.60} of ({signature:.80}), program {digest}")


def _text(module):
    """Without where it was made: that may be another path on each machine."""
    return module.to_text(metadata=False)


def here(devices):
    """The devices of a group of so many that this process runs."""
    if _world is None or devices % _world.size:
        return range(devices)
    each = devices // _world.size
    return range(_world.rank * each, (_world.rank + 1) * each)


def _exchange(data):
    return _core._network_gather(_world.network, _world.size, data) if _world else [data]


# --- who starts us ---

def _number(what, value):
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{what} must be a number, found {value!r}", Code.BAD_ARGUMENT) from None


def _settings(coordinator, processes, rank):
    """(coordinator, processes, rank), all None where MPI is to be asked."""
    coordinator = coordinator or os.environ.get("XLAC_COORDINATOR") or None
    if coordinator is None:
        if processes is not None or rank is not None:
            raise ArgumentError("processes= and rank= want coordinator=, the address of rank 0", Code.BAD_ARGUMENT, hint='such as "10.0.0.1:5000"')
        if not any(name in os.environ for name in _RANK_NAMES):
            raise ArgumentError("nothing says which processes there are", Code.BAD_ARGUMENT,
                                hint="start them by mpiexec -n 4 python ..., or give coordinator=, processes= and rank=")
        return None, None, None
    processes = _number("processes", os.environ.get("XLAC_PROCESSES") if processes is None else processes)
    rank = _number("rank", os.environ.get("XLAC_RANK") if rank is None else rank)
    if not 1 <= processes <= 1024 or not 0 <= rank < processes:
        raise ArgumentError(f"rank {rank} of {processes} processes: expected 1 to 1024 of them, and a rank from 0 to {processes - 1}",
                            Code.BAD_ARGUMENT)
    host, colon, port = coordinator.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536:
        raise ArgumentError(f"coordinator must be host:port, found {coordinator!r}", Code.BAD_ARGUMENT)
    return (host.strip("[]") or "127.0.0.1", int(port)), processes, rank


def _by_mpi(timeout, until):
    """MPI says who there is, and where rank 0 listens; what follows is as without it."""
    try:
        import mpi4py
    except ImportError:
        raise DeviceError("mpiexec has started this process, but mpi4py is not installed", Code.DEVICE, hint='pip install "xlac[mpi]"') from None
    why = f"xlac.distributed.init: MPI has not started within {timeout:g} s: some process of mpiexec has not called init\n"
    deadline = _core._network_deadline(timeout, why)  # MPI waits for all processes in a place where nothing else of Python runs
    mpi4py.rc.thread_level = "multiple"
    from mpi4py import MPI

    del deadline
    world = MPI.COMM_WORLD
    if world.size == 1 and any(int(os.environ.get(name) or 0) > 0 for name in _RANK_NAMES):
        raise DeviceError("MPI sees one process where mpiexec has started several: mpiexec is of another MPI than the one that mpi4py uses",
                          Code.DEVICE, hint="use the mpiexec that comes with it")
    if world.rank == 0:
        server = socket.create_server(("", 0))
        said = json.dumps([_addresses(), server.getsockname()[1]])
        for other in range(1, world.size):
            world.isend(said, dest=other, tag=1)
        return _by_sockets(None, world.size, 0, until, timeout, server)
    request = world.irecv(source=0, tag=1)
    while True:
        done, said = request.test()
        if done:
            break
        if time.monotonic() > until:
            raise DeviceError(f"rank 0 has not called xlac.distributed.init within {timeout:g} s", Code.DEVICE)
        time.sleep(0.002)
    addresses, port = json.loads(said)
    return _by_sockets((addresses, port), world.size, world.rank, until, timeout)


def _addresses():
    """Where others may reach this machine, the most likely first."""
    found = []
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
            found.append(probe.getsockname()[0])
    except OSError:
        pass
    try:
        found.append(socket.gethostbyname(socket.gethostname()))
    except OSError:
        pass
    return list(dict.fromkeys([a for a in found if not a.startswith("127.")] + ["127.0.0.1"]))


# --- meeting: rank 0 tells everybody where all others are ---

def _by_sockets(coordinator, processes, rank, until, timeout, server=None):
    listener = _Listener()
    own = {"version": VERSION, "order": sys.byteorder, "rank": rank, "processes": processes, "host": socket.gethostname(), "pid": os.getpid(),
           "machine": _machine(), "port": listener.port, "path": listener.path, "words": [struct_bits()]}
    try:
        if rank == 0:
            table = _coordinate(own, coordinator, server, processes, until, timeout)
        else:
            table = _report(own, coordinator, until, timeout)
        names = [f"rank {row['rank']} (process {row['pid']} on {row['host']})" for row in table["ranks"]]
        sockets = _connect_all(own, table, names, listener, until, timeout)
    finally:
        listener.close()
    peers = [(s.detach() if s else -1, name) for s, name in zip(sockets, names)]
    return _World(rank, names, _core._network(rank, peers))


def struct_bits():
    return 64 if sys.maxsize > 2 ** 32 else 32


def _machine():
    """What processes of one machine have in common."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


class _Listener:
    """Where ranks above ours find us: a TCP port, and on Linux a name for those on the same machine, which is faster."""

    def __init__(self):
        self.sockets = [socket.create_server(("", 0), backlog=1024)]
        self.port, self.path = self.sockets[0].getsockname()[1], None
        if sys.platform.startswith("linux"):
            name = f"xlac-{os.getpid()}-{os.urandom(8).hex()}"
            local = socket.socket(socket.AF_UNIX)
            local.bind("\0" + name)
            local.listen(1024)
            self.sockets.append(local)
            self.path = name

    def close(self):
        for one in self.sockets:
            one.close()


def _left(until):
    return max(0.01, until - time.monotonic())


def _send(s, what):
    s.sendall(json.dumps(what).encode() + b"\n")


def _receive(s, until):
    """One line, as JSON; None: the other end is closed, or has said nothing in time."""
    said = b""
    try:
        while not said.endswith(b"\n"):
            s.settimeout(_left(until))
            part = s.recv(1 << 20)
            if not part or len(said) > 1 << 26 or time.monotonic() > until:
                return None
            said += part
        return json.loads(said)
    except (OSError, ValueError):
        return None


def _ranks(numbers):
    numbers = sorted(numbers)
    shown = ", ".join(map(str, numbers[:20])) + ", ..." * (len(numbers) > 20)
    return f"rank {shown} is" if len(numbers) == 1 else f"ranks {shown} are"


def _objection(own, row, come):
    """Why that process can't be one of ours; None: it can."""
    if not isinstance(row, dict) or row.get("version") != VERSION or row.get("order") != own["order"] or row.get("words") != own["words"]:
        return "it speaks another version of xlac, or is another kind of machine"
    who = f"process {row['pid']} on {row['host']}"
    if row["processes"] != own["processes"]:
        return f"{who} expects {row['processes']} processes, rank 0 {own['processes']}"
    if row["rank"] in come or not 0 <= row["rank"] < own["processes"]:
        return f"{who} says that it is rank {row['rank']}, which is process {come[row['rank']]['pid']} on {come[row['rank']]['host']}" \
            if row["rank"] in come else f"{who} says that it is rank {row['rank']} of {own['processes']}"
    return None


def _coordinate(own, address, server, processes, until, timeout):
    """Rank 0: waits for all, and tells each of all."""
    try:
        server = server or socket.create_server(address, backlog=1024)
    except OSError as why:
        raise DeviceError(f"rank 0 can't listen on {address[0]}:{address[1]}: {why.strerror or why}", Code.DEVICE,
                          hint="coordinator= is an address of this machine, with a port that is free") from None
    come, lines, wrong = {0: own}, {}, None
    with server:
        while len(come) < processes and wrong is None and time.monotonic() < until:
            server.settimeout(_left(until))
            try:
                line, (host, *_) = server.accept()
            except TimeoutError:
                break
            row = _receive(line, min(until, time.monotonic() + 5))
            if row is None:
                line.close()
                continue
            wrong = _objection(own, row, come)
            number = row["rank"] if wrong is None else -len(lines) - 1
            lines[number] = line
            if wrong is None:
                come[number] = {**row, "address": host}
    missing = set(range(processes)) - set(come)
    if wrong is None and missing:
        wrong = f"{_ranks(missing)} missing: of {processes} processes {len(come)} have called xlac.distributed.init within {timeout:g} s"
    table = {"error": wrong} if wrong else {"token": os.urandom(16).hex(), "ranks": [come[i] for i in range(processes)]}
    for line in lines.values():
        try:
            _send(line, table)
        except OSError:
            pass
        line.close()
    if wrong:
        raise DeviceError(wrong, Code.DEVICE)
    return table


def _reach(addresses, port, until):
    """The first that answers, tried again until then; None: none does."""
    while True:
        for address in addresses:
            try:
                return socket.create_connection((address, port), timeout=min(5.0, _left(until)))
            except OSError:
                pass
        if time.monotonic() > until:
            return None
        time.sleep(0.02)


def _report(own, coordinator, until, timeout):
    """Other ranks: tell rank 0 that they are there, and hear who is."""
    addresses, port = coordinator
    addresses = [addresses] if isinstance(addresses, str) else addresses
    line = _reach(addresses, port, until)
    if line is None:
        raise DeviceError(f"rank 0 is missing: nobody has listened on {addresses[0]}:{port} within {timeout:g} s", Code.DEVICE)
    with line:
        _send(line, own)
        table = _receive(line, until + 5)  # rank 0 says who is missing when its own time is over
        reached = line.getpeername()[0]
    if table is None:
        raise DeviceError("rank 0 has ended before all ranks were there", Code.DEVICE)
    if "error" in table:
        raise DeviceError(table["error"], Code.DEVICE)
    table["ranks"][0]["address"] = reached
    return table


# --- connecting: each rank to those below it ---

def _prepare(s):
    s.settimeout(None)
    if s.family == socket.AF_UNIX:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            s.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
        return s
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 15000)):  # a machine that is gone
        if hasattr(socket, name):
            s.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return s


def _call(own, table, other, names, until, timeout):
    s = None
    if other["machine"] and other["machine"] == own["machine"] and other["path"]:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect("\0" + other["path"])
        except OSError:  # another network namespace
            s.close()
            s = None
    s = s or _reach([other["address"]], other["port"], until)
    if s is None:
        raise DeviceError(f"{names[own['rank']]} can't reach {names[other['rank']]} at {other['address']}:{other['port']} within {timeout:g} s",
                          Code.DEVICE, hint="each machine must be reachable from all others")
    s.sendall(f"{table['token']}{own['rank']:08}".encode())
    return _prepare(s)


def _answer(s, table, until):
    """The rank of who has called; None: it is nobody of ours."""
    said = b""
    try:
        while len(said) < 40:
            s.settimeout(min(5.0, _left(until)))
            part = s.recv(40 - len(said))
            if not part:
                return None
            said += part
        return int(said[32:]) if said[:32] == table["token"].encode() else None
    except (OSError, ValueError):
        return None


def _connect_all(own, table, names, listener, until, timeout):
    import select

    rank, n = own["rank"], own["processes"]
    found = [None] * n
    for other in range(rank):
        found[other] = _call(own, table, table["ranks"][other], names, until, timeout)
    while any(found[other] is None for other in range(rank + 1, n)):
        ready, _, _ = select.select(listener.sockets, [], [], _left(until))
        for one in ready:
            s, _ = one.accept()
            other = _answer(s, table, until)
            if other is None or not rank < other < n or found[other] is not None:
                s.close()
            else:
                found[other] = _prepare(s)
        if time.monotonic() > until:
            missing = [names[other] for other in range(rank + 1, n) if found[other] is None]
            raise DeviceError(f"{', '.join(missing)} did not reach {names[rank]} within {timeout:g} s", Code.DEVICE)
    return found


# --- ends ---

def _watch_last_words():
    """What ends this process is told to those who wait for it."""
    outer = sys.excepthook

    def hook(kind, value, trace):
        global _last_words
        _last_words = f"{kind.__name__}: {value}".replace("\n", " ")[:300]
        outer(kind, value, trace)

    sys.excepthook = hook
