"""usage: consumer.py LIBRARY SEGMENT QUESTIONS: the same as consumer.c, by ctypes."""
import ctypes as c
import sys


class Text(c.Structure):
    _fields_ = [("data", c.c_void_p), ("length", c.c_size_t)]

    def __str__(self):
        return c.string_at(self.data, self.length).decode() if self.length else ""


class Route(c.Structure):
    _fields_ = [("segment", c.c_void_p), ("epoch", c.c_uint64), ("shard", c.c_uint16), ("target", c.c_uint16),
                ("parts", c.c_uint16), ("answer", c.c_uint8), ("source", c.c_uint8), ("state", c.c_uint8),
                ("writable", c.c_uint8), ("zeros", c.c_uint8 * 6)]


class Shard(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("name", Text), ("primary", Text), ("region", Text),
                ("replica_count", c.c_uint32), ("attribute_count", c.c_uint32)]


lib = c.CDLL(sys.argv[1])
lib.fingerpost_status_text.restype = c.c_char_p
reader = c.c_void_p()
message = c.create_string_buffer(256)
if lib.fingerpost_open(sys.argv[2].encode(), None, c.byref(reader), message, c.c_size_t(256)) != 0:
    sys.exit(message.value.decode())
for line in open(sys.argv[3], encoding="utf-8", newline="\n"):
    name, object_name = line.rstrip("\n").split("\t")
    name_bytes, object_bytes = name.encode(), None if object_name == "-" else object_name.encode()
    route, waited, shard = Route(), Route(), Shard(struct_size=c.sizeof(Shard))
    size, object_size = c.c_size_t(len(name_bytes)), c.c_size_t(len(object_bytes or b""))
    if object_bytes is None:
        lib.fingerpost_resolve(reader, name_bytes, size, c.byref(route))
    else:
        lib.fingerpost_resolve_object(reader, name_bytes, size, object_bytes, object_size, c.byref(route))
    lib.fingerpost_route_shard(c.byref(route), c.byref(shard))
    status = lib.fingerpost_wait_writable(reader, name_bytes, size, object_bytes, object_size, c.c_int64(0),
                                          c.byref(waited), message, c.c_size_t(256))
    print(name, object_name, route.answer, route.source, route.state, route.epoch, route.parts, route.writable,
          shard.name, shard.primary, lib.fingerpost_status_text(status).decode(), sep="\t")
lib.fingerpost_close(reader)
