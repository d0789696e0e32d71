"""Buffers through the plugin alone: into them, out of them, between them; deleted, shared, failed."""
import ctypes

import numpy as np
import plugin
import pytest


def pointer(p, buffer):
    return p.Buffer_OpaqueDeviceMemoryDataPointer(buffer=buffer).device_memory_ptr


def ready(p, event):
    return p.Event_IsReady(event=event).is_ready


@pytest.mark.parametrize("array", [np.arange(6, dtype=np.int32).reshape(2, 3), np.array(2.5), np.empty((0, 3), np.float32),
                                   np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1), np.arange(10)[::-1], np.arange(100000.0)[::3],
                                   np.broadcast_to(np.float32(3), (5, 2)), np.array([True, False]), np.array([1 + 2j], np.complex64)])
@pytest.mark.parametrize("semantics", [0, 1, 2])
def test_arrays_come_back_as_they_went_in(p, client, array, semantics):
    buffer, done = p.put(client, array, semantics=semantics)
    assert (p.get(buffer) == array).all()
    p.destroy(buffer)
    assert ready(p, done)
    p.Event_Destroy(event=done)


def test_large_immutable_arrays_are_used_where_they_lie(p, client):
    array = np.arange(1 << 16, dtype=np.float32)
    buffer, done = p.put(client, array, semantics=2)
    assert pointer(p, buffer) == array.ctypes.data
    assert not ready(p, done)
    p.destroy(buffer)
    assert ready(p, done)
    p.Event_Destroy(event=done)
    copied, done = p.put(client, array, semantics=0)
    assert pointer(p, copied) != array.ctypes.data and ready(p, done)
    p.destroy(copied)


def test_a_client_may_copy_all_arrays_of_the_host(p):
    client, array = p.client(copy_host_arrays="1"), np.arange(1 << 16, dtype=np.float32)
    buffer, done = p.put(client, array, semantics=2)
    assert pointer(p, buffer) != array.ctypes.data and ready(p, done)
    p.destroy(buffer)
    p.Client_Destroy(client=client)


def test_deleting_is_once_and_external_references_keep_the_memory(p, client):
    buffer = p.put(client, np.arange(5.0))[0]
    p.Buffer_IncreaseExternalReferenceCount(buffer=buffer)
    where = pointer(p, buffer)
    p.Buffer_Delete(buffer=buffer)
    p.Buffer_Delete(buffer=buffer)
    assert p.deleted(buffer)
    assert list((ctypes.c_double * 5).from_address(where)) == [0, 1, 2, 3, 4]
    for call in (lambda: p.get(buffer), lambda: p.Buffer_UnsafePointer(buffer=buffer),
                 lambda: p.Buffer_IncreaseExternalReferenceCount(buffer=buffer)):
        with pytest.raises(plugin.Failed, match="deleted or donated"):
            call()
    with pytest.raises(plugin.Failed, match=r"^GetReadyFuture\(\) called on deleted or donated buffer$"):
        p.wait(p.Buffer_ReadyEvent(buffer=buffer).event)
    p.Buffer_DecreaseExternalReferenceCount(buffer=buffer)
    with pytest.raises(plugin.Failed, match="no external reference"):
        p.Buffer_DecreaseExternalReferenceCount(buffer=buffer)
    p.destroy(buffer)


def test_memory_that_nobody_uses_is_counted_out(p, client):
    device = p.devices(client)[0]
    before = p.Device_MemoryStats(device=device)
    buffer = p.put(client, np.zeros(1000))[0]
    stats = p.Device_MemoryStats(device=device)
    assert stats.bytes_in_use - before.bytes_in_use == 8000 and stats.peak_bytes_in_use >= 8000 and stats.bytes_limit > 0
    p.Buffer_Delete(buffer=buffer)
    assert p.Device_MemoryStats(device=device).bytes_in_use == before.bytes_in_use
    p.destroy(buffer)


def test_copies_within_a_memory_are_new_and_to_another_one_share(p):
    client = p.client(num_devices=2)
    a, b = p.devices(client)
    buffer = p.put(client, np.arange(4.0))[0]
    same = p.Buffer_CopyToDevice(buffer=buffer, dst_device=a).dst_buffer
    there = p.Buffer_CopyToDevice(buffer=buffer, dst_device=b).dst_buffer
    assert pointer(p, same) != pointer(p, buffer) and pointer(p, there) == pointer(p, buffer)
    assert p.Buffer_Device(buffer=there).device == b
    p.Buffer_Delete(buffer=buffer)
    assert p.get(same).tolist() == p.get(there).tolist() == [0, 1, 2, 3]
    p.destroy(buffer, same, there)
    p.Client_Destroy(client=client)


def test_other_layouts_of_the_host_are_honoured(p, client):
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    buffer = p.put(client, array)[0]
    order = (ctypes.c_int64 * 3)(0, 2, 1)  # minor to major
    layout = plugin.Layout(struct_size=76, inner_size=56, minor_to_major=ctypes.addressof(order), rank=3)
    out = np.zeros((3, 4, 2), np.int32)
    p.wait(p.Buffer_ToHostBuffer(src=buffer, host_layout=ctypes.addressof(layout), dst=out.ctypes.data, dst_size=out.nbytes).event)
    assert (out == array.transpose(1, 2, 0)).all()
    order[0] = 1
    with pytest.raises(plugin.Failed, match="not an order of its dimensions"):
        p.Buffer_ToHostBuffer(src=buffer, host_layout=ctypes.addressof(layout), dst=out.ctypes.data, dst_size=out.nbytes)
    p.destroy(buffer)


def test_sizes_and_parts_of_arrays(p, client):
    buffer = p.put(client, np.arange(8, dtype=np.uint8))[0]
    assert p.Buffer_ToHostBuffer(src=buffer).dst_size == 8
    out = np.zeros(3, np.uint8)
    p.wait(p.Buffer_CopyRawToHost(buffer=buffer, dst=out.ctypes.data, offset=2, transfer_size=3).event)
    assert out.tolist() == [2, 3, 4]
    for call in (lambda: p.Buffer_CopyRawToHost(buffer=buffer, dst=out.ctypes.data, offset=6, transfer_size=3),
                 lambda: p.Buffer_ToHostBuffer(src=buffer, dst=out.ctypes.data, dst_size=3)):
        with pytest.raises(plugin.Failed):
            call()
    p.destroy(buffer)


def test_views_of_others_memory_tell_the_owner_when_they_are_gone(p, client):
    told, array = [], np.arange(6, dtype=np.float32)
    tell = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda data, arg: told.append((data, arg)))

    def view(at, dims, order=None):
        sizes = (ctypes.c_int64 * len(dims))(*dims)
        layout = None
        if order:
            layout = plugin.Layout(struct_size=76, inner_size=56, minor_to_major=ctypes.addressof((keep := (ctypes.c_int64 * len(order))(*order))),
                                   rank=len(order))
            told_keep.append(keep)
        return p.Client_CreateViewOfDeviceBuffer(client=client, device_buffer_ptr=at, dims=ctypes.addressof(sizes), num_dims=len(dims),
                                                 element_type=11, layout=ctypes.addressof(layout) if layout else None,
                                                 device=p.devices(client)[0], on_delete_callback=ctypes.cast(tell, ctypes.c_void_p),
                                                 on_delete_callback_arg=7).buffer
    told_keep = []
    buffer = view(array.ctypes.data, [6])
    assert pointer(p, buffer) == array.ctypes.data and told == []
    p.destroy(buffer)
    assert told == [(array.ctypes.data, 7)]
    turned = view(array.ctypes.data, [2, 3], order=[0, 1])  # copied, so the owner is told at once
    assert len(told) == 2 and (p.get(turned) == array.reshape(3, 2).T).all()
    shifted = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:]
    unaligned = view(shifted.ctypes.data, [6])
    assert len(told) == 3 and (p.get(unaligned) == array).all()
    p.destroy(turned, unaligned)
    assert len(told) == 3


def test_an_error_buffer_fails_whoever_needs_it(p, client):
    import test_plugin_running
    text, dims = b"it went wrong", (ctypes.c_int64 * 1)(4)
    bad = p.Client_CreateErrorBuffer(client=client, error_code=13, error_message=ctypes.cast(text, ctypes.c_void_p), error_message_size=len(text),
                                     shape_dims=ctypes.addressof(dims), shape_num_dims=1, shape_element_type=11,
                                     memory=p.Device_DefaultMemory(device=p.devices(client)[0]).memory).buffer
    good = p.put(client, np.ones(4, np.float32))[0]
    exe = p.compile(client, test_plugin_running.ADD)
    (out,), done = p.run(exe, good, bad)
    for event in (done, p.Buffer_ReadyEvent(buffer=bad).event, p.Buffer_ReadyEvent(buffer=out).event):
        with pytest.raises(plugin.Failed, match="it went wrong") as failed:
            p.wait(event)
        assert failed.value.code == 13
    with pytest.raises(plugin.Failed, match="it went wrong"):
        p.get(out)
    (fine,), done = p.run(exe, good, good)
    p.wait(done)
    assert p.get(fine).tolist() == [2] * 4
    p.destroy(bad, good, out, fine)
    p.LoadedExecutable_Destroy(executable=exe)


def test_events_are_set_once_and_call_back_once(p):
    calls = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    call = kind(lambda error, arg: calls.append((str(p.take(error)) if error else None, arg)))
    for code, text in ((0, None), (1, "stopped")):
        event = p.Event_Create().event
        p.Event_OnReady(event=event, callback=ctypes.cast(call, ctypes.c_void_p), user_arg=5)
        assert not ready(p, event) and calls == []
        p.Event_Set(event=event, error_code=code, error_message=ctypes.cast(b"stopped", ctypes.c_void_p), error_message_size=7)
        p.Event_OnReady(event=event, callback=ctypes.cast(call, ctypes.c_void_p), user_arg=6)
        assert ready(p, event) and calls == [(text, 5), (text, 6)]
        with pytest.raises(plugin.Failed, match="set before"):
            p.Event_Set(event=event, error_code=0)
        p.Event_Destroy(event=event)
        calls.clear()
