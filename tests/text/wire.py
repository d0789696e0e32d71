"""Protocol buffers on the wire, without a schema: (number, wire type, value) triples, for tests that change a message."""


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _put(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def decode(data):
    fields, at = [], 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if kind == 2:
                size, at = _varint(data, at)
            value, at = data[at:at + size], at + size
        fields.append((number, kind, value))
    return fields


def encode(fields):
    out = b""
    for number, kind, value in fields:
        out += _put(number << 3 | kind)
        out += _put(value) if kind == 0 else (_put(len(value)) if kind == 2 else b"") + value
    return out


def varints(data):
    """The numbers of a packed list."""
    found, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(value)
    return found
