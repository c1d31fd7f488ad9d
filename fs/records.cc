// SPDX-License-Identifier: Apache-2.0
#include "fs/records.h"

#include "base/relpath.h"
#include "fs/codec.h"

namespace stoplog::fs {
namespace {

// One function lists the fields of each record; it runs once to write and once
// to read, so the two can never disagree.
class Put {
 public:
  explicit Put(std::string& out) : w_(out) {}
  void operator()(const uint8_t& v) { w_.u8(v); }
  void operator()(const bool& v) { w_.u8(v ? 1 : 0); }
  void operator()(const uint32_t& v) { w_.u32(v); }
  void operator()(const int32_t& v) { w_.u32(static_cast<uint32_t>(v)); }
  void operator()(const uint64_t& v) { w_.u64(v); }
  void operator()(const timespec& v) { w_.time(v); }
  void operator()(const std::string& v) { w_.text(v); }
  void operator()(const sys::Stat& v) { w_.stat(v); }
  void operator()(const Hash128& v) { w_.hash(v); }
  void operator()(const Sha256Digest& v) { w_.raw(v.data(), v.size()); }
  void operator()(const RelPath& v) { w_.text(v.str()); }
  template <typename T>
    requires std::is_enum_v<T>
  void operator()(const T& v) {
    w_.u8(static_cast<uint8_t>(v));
  }
  template <typename T>
  void operator()(const std::optional<T>& v) {
    w_.u8(v ? 1 : 0);
    if (v) (*this)(*v);
  }
  void operator()(const Xattrs& v) {
    w_.u32(static_cast<uint32_t>(v.size()));
    for (const auto& [name, value] : v) {
      w_.text(name);
      w_.text(value);
    }
  }
  template <typename T, typename Each>
  void list(const std::vector<T>& v, size_t, Each each) {
    w_.u32(static_cast<uint32_t>(v.size()));
    for (const T& item : v) each(*this, item);
  }
  void name(const std::string& v) { w_.text(v); }
  void name_or_empty(const std::string& v) { w_.text(v); }
  void limit(uint8_t, uint8_t) {}

 private:
  Writer w_;
};

class Get {
 public:
  explicit Get(std::string_view in) : r_(in) {}
  void operator()(uint8_t& v) { v = r_.u8(); }
  void operator()(bool& v) {
    uint8_t b = r_.u8();
    if (b > 1) r_.fail();
    v = b == 1;
  }
  void operator()(uint32_t& v) { v = r_.u32(); }
  void operator()(int32_t& v) { v = static_cast<int32_t>(r_.u32()); }
  void operator()(uint64_t& v) { v = r_.u64(); }
  void operator()(timespec& v) { v = r_.time(); }
  void operator()(std::string& v) { v = r_.text(); }
  void operator()(sys::Stat& v) { v = r_.stat(); }
  void operator()(Hash128& v) { v = r_.hash(); }
  void operator()(Sha256Digest& v) { r_.raw(v.data(), v.size()); }
  void operator()(RelPath& v) {
    auto path = RelPath::parse(r_.text());
    if (path)
      v = std::move(*path);
    else
      r_.fail();
  }
  template <typename T>
    requires std::is_enum_v<T>
  void operator()(T& v) {
    v = static_cast<T>(r_.u8());
  }
  template <typename T>
  void operator()(std::optional<T>& v) {
    v.reset();
    if (r_.u8() != 0 && r_.ok()) (*this)(v.emplace());
  }
  void operator()(Xattrs& v) {
    uint32_t count = r_.u32();
    if (!r_.fits(count, 8)) return;
    for (uint32_t i = 0; i < count && r_.ok(); ++i) {
      std::string key(r_.text());
      v[std::move(key)] = r_.text();
    }
  }
  template <typename T, typename Each>
  void list(std::vector<T>& v, size_t least, Each each) {
    uint32_t count = r_.u32();
    if (!r_.fits(count, least)) return;
    for (uint32_t i = 0; i < count && r_.ok(); ++i)
      each(*this, v.emplace_back());
  }
  void name(std::string& v) {
    v = r_.text();
    if (!is_valid_name(v)) r_.fail();
  }
  void name_or_empty(std::string& v) {
    v = r_.text();
    if (!v.empty() && !is_valid_name(v)) r_.fail();
  }
  void limit(uint8_t value, uint8_t most) {
    if (value > most) r_.fail();
  }
  bool done() const { return r_.done(); }

 private:
  Reader r_;
};

void fields(auto& io, auto& r)
  requires std::is_same_v<std::remove_cvref_t<decltype(r)>, Extent>
{
  io(r.offset), io(r.length), io(r.where), io(r.segment), io(r.at), io(r.epoch);
  io.limit(static_cast<uint8_t>(r.where), 3);
}

template <typename R, typename T>
concept Is = std::is_same_v<std::remove_cvref_t<R>, T>;

template <typename Io, Is<Mark> R>
void fields(Io& io, R& r) {
  io(r.id), io(r.kind), io(r.position), io(r.command), io(r.time), io(r.name),
      io(r.generation);
  io.limit(static_cast<uint8_t>(r.kind), 5);
}
template <typename Io, Is<OpenRecord> R>
void fields(Io& io, R& r) {
  io(r.draft), io(r.generation), io(r.cookie_seed);
}
template <typename Io, Is<AdoptRecord> R>
void fields(Io& io, R& r) {
  io(r.serial), io(r.parent), io.name(r.name), io(r.ino), io(r.base);
}
template <typename Io, Is<CreateRecord> R>
void fields(Io& io, R& r) {
  io(r.serial), io(r.parent), io.name_or_empty(r.name), io(r.ino), io(r.mode),
      io(r.uid), io(r.gid), io(r.rdev), io(r.time), io(r.target), io(r.xattrs);
}
template <typename Io, Is<LinkRecord> R>
void fields(Io& io, R& r) {
  io(r.serial), io(r.parent), io.name(r.name), io(r.lower), io(r.time);
}
template <typename Io, Is<UnlinkRecord> R>
void fields(Io& io, R& r) {
  io(r.parent), io.name(r.name), io(r.time), io(r.lower), io(r.lower_target);
}
template <typename Io, Is<RenameRecord> R>
void fields(Io& io, R& r) {
  io(r.parent), io.name(r.name), io(r.new_parent), io.name(r.new_name),
      io(r.exchange), io(r.time), io(r.lower), io(r.lower_target);
}
template <typename Io, Is<SetAttrRecord> R>
void fields(Io& io, R& r) {
  io(r.serial), io(r.own), io(r.by_user), io(r.mode), io(r.uid), io(r.gid),
      io(r.atime), io(r.mtime), io(r.ctime);
}
template <typename Io, Is<XattrRecord> R>
void fields(Io& io, R& r) {
  io(r.serial), io(r.xattrs), io(r.ctime);
}
template <typename Io, Is<TakeRecord> R>
void fields(Io& io, R& r) {
  io(r.serial), io(r.base), io(r.whole), io(r.segment), io(r.at), io(r.hash);
}
template <typename Io, Is<ExtentRecord> R>
void fields(Io& io, R& r) {
  io(r.serial), io(r.offset), io(r.length), io(r.where), io(r.segment),
      io(r.at), io(r.keep_size), io(r.time);
  io.limit(static_cast<uint8_t>(r.where), 3);
}
template <typename Io, Is<TruncateRecord> R>
void fields(Io& io, R& r) {
  io(r.serial), io(r.size), io(r.time);
}
template <typename Io, Is<TouchRecord> R>
void fields(Io& io, R& r) {
  io(r.serial), io(r.time);
}
template <typename Io, Is<PinRecord> R>
void fields(Io& io, R& r) {
  io(r.serial), io(r.segment), io(r.at), io(r.hash);
}
template <typename Io, Is<SealRecord> R>
void fields(Io& io, R& r) {
  io(r.segment), io(r.at), io(r.length), io(r.hash);
}
template <typename Io, Is<MarkRecord> R>
void fields(Io& io, R& r) {
  fields(io, r.mark);
}
template <typename Io, Is<BaseMapRecord> R>
void fields(Io& io, R& r) {
  io(r.reviewed), io(r.more);
  io.list(r.changes, 10, [](auto& i, auto& c) {
    i(c.path), i(c.now), i(c.from), i(c.preimage), i(c.before),
        i(c.before_target), i(c.rest_held);
  });
}
template <typename Io, Is<DropRecord> R>
void fields(Io& io, R& r) {
  io.list(r.serials, 8, [](auto& i, auto& s) { i(s); });
}
template <typename Io, Is<DriftRecord> R>
void fields(Io& io, R& r) {
  io(r.serial), io(r.what), io(r.time);
}
template <typename Io, Is<NodeRecord> R>
void fields(Io& io, R& r) {
  io(r.serial), io(r.ino), io(r.mode), io(r.uid), io(r.gid), io(r.rdev);
  io(r.atime), io(r.mtime), io(r.ctime), io(r.flags), io(r.command);
  io(r.nlink_delta), io(r.touched), io(r.base), io(r.lower_path);
  io.list(r.links, 18, [](auto& i, auto& l) {
    i(l.parent), i.name(l.name), i(l.from), i(l.origin);
    i.limit(l.from, 2), i(l.shadows);
  });
  io(r.target), io(r.xattrs), io(r.has_content), io(r.size);
  io.list(r.extents, 33, [](auto& i, auto& e) { fields(i, e); });
  io(r.lower), io(r.has_base), io(r.lower), io(r.has_base), io(r.base_segment),
      io(r.base_at), io(r.base_hash);
  io(r.drift), io(r.drift_time);
}
template <typename Io, Is<GoneRecord> R>
void fields(Io& io, R& r) {
  io(r.dir);
  io.list(r.names, 4, [](auto& i, auto& n) { i.name(n); });
}
template <typename Io, Is<DeletedRecord> R>
void fields(Io& io, R& r) {
  io(r.path), io(r.base), io(r.target), io(r.command), io(r.when),
      io(r.segment), io(r.at);
}
template <typename Io, Is<TableRecord> R>
void fields(Io& io, R& r) {
  io(r.next_serial), io(r.next_ino), io(r.epoch), io(r.command),
      io(r.next_mark), io(r.next_segment), io(r.position);
  io.list(r.marks, 37, [](auto& i, auto& m) { fields(i, m); });
}
template <typename Io, Is<StartRecord> R>
void fields(Io&, R&) {}

template <typename Io, Is<ReleaseRecord> R>
void fields(Io& io, R& r) {
  io(r.serial);
}

template <typename Io, Is<RefusedRecord> R>
void fields(Io& io, R& r) {
  io.list(r.positions, 8, [](auto& i, auto& p) { i(p); });
}

template <typename Io, Is<DeviceRecord> R>
void fields(Io& io, R& r) {
  io(r.device);
}

template <typename Io, Is<FromRecord> R>
void fields(Io& io, R& r) {
  io(r.position), io(r.depth), io(r.keeps_command);
  fields(io, r.table);
}

template <typename Io, Is<OlderRecord> R>
void fields(Io& io, R& r) {
  io.list(r.parts, 28, [](auto& i, auto& p) {
    i(p.generation), i(p.draft), i(p.first), i(p.last);
  });
}

template <typename Io, Is<ToldRecord> R>
void fields(Io& io, R& r) {
  io(r.follows);
  io.list(r.commits, 8, [](auto& i, auto& c) { i(c); });
}

template <size_t I = 0>
Result<Record> decode_as(uint16_t type, std::string_view bytes) {
  if constexpr (I < std::variant_size_v<Record>) {
    if (type != I) return decode_as<I + 1>(type, bytes);
    std::variant_alternative_t<I, Record> record;
    Get get(bytes);
    fields(get, record);
    if (!get.done())
      return fail(Code::kCorrupt, "malformed record of type {}", type);
    return Record(std::move(record));
  } else {
    return fail(Code::kCorrupt, "unknown record type {}", type);
  }
}

}  // namespace

uint16_t record_type(const Record& record) {
  return static_cast<uint16_t>(record.index());
}

Serial subject_of(const Record& record) {
  return std::visit(
      [](const auto& r) -> Serial {
        if constexpr (requires { r.serial; })
          return r.serial;
        else
          return 0;
      },
      record);
}

void encode(const Record& record, std::string& out) {
  Put put(out);
  std::visit([&](const auto& r) { fields(put, r); }, record);
}

Result<Record> decode(uint16_t type, std::string_view bytes) {
  return decode_as(type, bytes);
}

}  // namespace stoplog::fs
