-- usage: consumer.lua LIBRARY SEGMENT QUESTIONS HEADER: the same as consumer.c, by LuaJIT's FFI, which reads the header itself.
local ffi = require("ffi")
local library, segment, questions, header = arg[1], arg[2], arg[3], arg[4]

-- The declarations of fingerpost.h: all between extern "C" and its end, without the preprocessor's lines.
local text = assert(io.open(header)):read("*a"):gsub("/%*.-%*/", "")
ffi.cdef((text:gsub("extern \"C\" {", ""):gsub("#ifdef __cplusplus\n}\n#endif", ""):gsub("#[^\n]*", "")))
local lib = ffi.load(library)

local message = ffi.new("char[256]")
local reader = ffi.new("fingerpost_reader*[1]")
if lib.fingerpost_open(segment, nil, reader, message, 256) ~= 0 then error(ffi.string(message)) end
reader = ffi.gc(reader[0], lib.fingerpost_close)

local function string_of(view)
  return view.length == 0 and "" or ffi.string(view.data, view.length)
end

for line in io.lines(questions) do
  local id, object = line:match("^(.-)\t(.*)$")
  local route, waited = ffi.new("fingerpost_route"), ffi.new("fingerpost_route")
  local shard = ffi.new("fingerpost_shard", { struct_size = ffi.sizeof("fingerpost_shard") })
  if object == "-" then
    lib.fingerpost_resolve(reader, id, #id, route)
  else
    lib.fingerpost_resolve_object(reader, id, #id, object, #object, route)
  end
  lib.fingerpost_route_shard(route, shard)
  local part = object ~= "-" and object or nil
  local status = lib.fingerpost_wait_writable(reader, id, #id, part, #object, 0, waited, message, 256)
  print(table.concat({ id, object, route.answer, route.source, route.state, tostring(tonumber(route.epoch)), route.parts,
    route.writable, string_of(shard.name), string_of(shard.primary), ffi.string(lib.fingerpost_status_text(status)) }, "\t"))
end
