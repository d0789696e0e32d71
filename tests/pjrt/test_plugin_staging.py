"""Buffers that exist before what is in them, through the plugin alone: sent by pieces, failed, read where the client says later, seen as others."""
import ctypes

import numpy as np
import plugin
import pytest


class ShapeSpec(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("dims", ctypes.c_void_p), ("num_dims", ctypes.c_size_t),
                ("element_type", ctypes.c_int)]


class FutureArgs(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("callback_data", ctypes.c_void_p), ("error_code", ctypes.c_int), ("error_message", ctypes.c_char_p),
                ("error_message_size", ctypes.c_size_t), ("dst", ctypes.c_void_p)]


def layout(*minor_to_major):
    order = (ctypes.c_int64 * len(minor_to_major))(*minor_to_major)
    made = plugin.Layout(struct_size=76, inner_size=56, minor_to_major=ctypes.addressof(order), rank=len(minor_to_major))
    made.keep = order
    return made


class Sent:
    """A transfer manager for float32 arrays of these shapes."""

    def __init__(self, p, client, *shapes, layouts=()):
        self.p, self.dims = p, [(ctypes.c_int64 * (len(s) or 1))(*s) for s in shapes]
        specs = (ShapeSpec * len(shapes))(*[ShapeSpec(ctypes.sizeof(ShapeSpec), None, ctypes.addressof(d), len(s), 11) for d, s in zip(self.dims, shapes)])
        pointers = (ctypes.c_void_p * (len(layouts) or 1))(*[ctypes.addressof(x) if x else None for x in layouts])
        memory = p.Device_DefaultMemory(device=p.devices(client)[0]).memory
        self.m = p.Client_CreateBuffersForAsyncHostToDevice(client=client, shape_specs=ctypes.addressof(specs), num_shape_specs=len(shapes),
                                                            device_layouts=ctypes.addressof(pointers), num_device_layouts=len(layouts),
                                                            memory=memory).transfer_manager

    def __getattr__(self, name):
        return lambda **fields: getattr(self.p, "AsyncHostToDeviceTransferManager_" + name)(transfer_manager=self.m, **fields)

    def send(self, index, array, offset, last):
        done = self.TransferData(buffer_index=index, data=array.ctypes.data, offset=offset, transfer_size=array.nbytes, is_last_transfer=last)
        self.p.wait(done.done_with_h2d_transfer)


def ready(p, buffer):
    event = p.Buffer_ReadyEvent(buffer=buffer).event
    found = p.Event_IsReady(event=event).is_ready
    p.Event_Destroy(event=event)
    return found


def test_an_array_comes_in_pieces_while_a_program_waits_for_it(p, client):
    sent, array = Sent(p, client, (4, 256), (3,)), np.arange(1024, dtype=np.float32).reshape(4, 256)
    assert sent.BufferCount().buffer_count == 2 and sent.BufferSize(buffer_index=0).buffer_size == 4096
    assert sent.Device().device_out == p.devices(client)[0]
    sent.AddMetadata()
    buffer = sent.RetrieveBuffer(buffer_index=0).buffer_out
    exe = p.compile(client, "func.func @main(%a: tensor<4x256xf32>) -> tensor<4x256xf32> { %0 = stablehlo.add %a, %a : tensor<4x256xf32>\n"
                            "return %0 : tensor<4x256xf32> }")
    sent.send(0, array[2:], 2048, False)
    assert not ready(p, buffer)
    sent.send(0, array[:2], 0, True)
    outputs, event = p.run(exe, buffer)
    p.wait(event)
    assert (p.get(buffer) == array).all() and (p.get(outputs[0]) == 2 * array).all()
    with pytest.raises(plugin.Failed, match="given out before"):
        sent.RetrieveBuffer(buffer_index=0)
    with pytest.raises(plugin.Failed, match="has come whole"):
        sent.send(0, array[:2], 0, True)
    sent.Destroy()
    for b in (buffer, outputs[0]):
        p.destroy(b)
    p.LoadedExecutable_Destroy(executable=exe)


def test_a_whole_array_goes_into_the_layout_of_its_buffer(p, client):
    sent, array = Sent(p, client, (2, 3), (2, 3), layouts=[layout(0, 1), None]), np.arange(6, dtype=np.float32).reshape(2, 3)
    buffers = [sent.RetrieveBuffer(buffer_index=i).buffer_out for i in range(2)]
    dims, columns = (ctypes.c_int64 * 2)(2, 3), layout(0, 1)
    for i, (data, given) in enumerate([(array, None), (np.ascontiguousarray(array.T), columns)]):
        done = sent.TransferLiteral(buffer_index=i, data=data.ctypes.data, shape_dims=ctypes.addressof(dims), shape_num_dims=2, shape_element_type=11,
                                    shape_layout=ctypes.addressof(given) if given else None)
        p.wait(done.done_with_h2d_transfer)
    raw = np.empty(6, np.float32)
    p.wait(p.Buffer_CopyRawToHost(buffer=buffers[0], dst=raw.ctypes.data, transfer_size=24).event)
    assert raw.tolist() == [0, 3, 1, 4, 2, 5] and (p.get(buffers[1]) == array).all()
    sent.Destroy()
    for b in buffers:
        p.destroy(b)


def test_what_does_not_come_fails(p, client):
    sent, array = Sent(p, client, (3,), (3,), (3,)), np.ones(3, np.float32)
    buffers = [sent.RetrieveBuffer(buffer_index=i).buffer_out for i in range(2)]
    sent.SetBufferError(buffer_index=0, error_code=13, error_message=ctypes.cast(b"lost it", ctypes.c_void_p), error_message_size=7)
    sent.send(1, array[:1], 0, False)
    for bad in ({"buffer_index": 3}, {"buffer_index": 1, "offset": 8}, {"buffer_index": 1, "offset": -1}):
        with pytest.raises(plugin.Failed):
            sent.TransferData(data=array.ctypes.data, transfer_size=8, **bad)
    sent.Destroy()
    with pytest.raises(plugin.Failed, match="lost it"):
        p.get(buffers[0])
    with pytest.raises(plugin.Failed, match="ended before all of the array had come"):
        p.get(buffers[1])
    for b in buffers:
        p.destroy(b)


def test_a_copy_out_goes_to_memory_that_is_named_later(p, client):
    array, out = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
    buffer = p.put(client, array)[0]
    for code in (0, 1):
        got = p.Buffer_CopyRawToHostFuture(buffer=buffer, offset=8, transfer_size=16)
        assert not p.Event_IsReady(event=got.event).is_ready
        args = FutureArgs(48, got.callback_data, code, b"no room", 7, out.ctypes.data)
        ctypes.CFUNCTYPE(None, ctypes.POINTER(FutureArgs))(got.future_ready_callback)(args)
        if code:
            with pytest.raises(plugin.Failed, match="no room"):
                p.wait(got.event)
        else:
            p.wait(got.event)
            assert out.tolist() == [2, 3, 4, 5]
    with pytest.raises(plugin.Failed, match="the array has 32"):
        p.Buffer_CopyRawToHostFuture(buffer=buffer, offset=24, transfer_size=16)
    p.destroy(buffer)


def test_the_same_bytes_are_another_array(p, client):
    array, dims = np.arange(6, dtype=np.float32), (ctypes.c_int64 * 2)(3, 2)
    buffer = p.put(client, array)[0]
    other = p.Buffer_Bitcast(buffer=buffer, element_type=4, dims=ctypes.addressof(dims), num_dims=2).out_buffer
    p.destroy(buffer)
    assert (p.get(other) == array.view(np.int32).reshape(3, 2)).all()
    with pytest.raises(plugin.Failed, match="24 bytes is to be one of 48"):
        p.Buffer_Bitcast(buffer=other, element_type=5, dims=ctypes.addressof(dims), num_dims=2)
    p.destroy(other)


def test_memories_have_numbers(p, client):
    topology = p.Client_TopologyDescription(client=client).topology
    got = p.TopologyDescription_GetMemorySpaceKindIds(topology=topology)
    assert list((ctypes.c_int * got.num_memory_space_kind_ids).from_address(got.memory_space_kind_ids)) == [0, 1, 2]
