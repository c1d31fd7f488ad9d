// SPDX-License-Identifier: Apache-2.0
// The content store: file contents named by their digest
// (snapshot/content_digest.h), compressed, written once, verified on every
// read. Loose objects are one file each; a commit's pre-images share a pack.
//
//   ObjectStore store = TRY(ObjectStore::open(dir));
//   auto use = TRY(store.use());              // while objects are referred to
//   Sha256Digest id = TRY(store.put(*content));
//   TRY(store.get_into(id, fd));              // holes stay holes
//
// Any number of processes may write at the same time: a name says what the
// content is, so the second writer of an object finds it there. An object is
// durable when put() or PackWriter::finish() returns; a crash leaves nothing
// under a name that is not whole. Only sweep() removes, alone: it takes the
// lock that use() shares, so an object found by has() cannot vanish before the
// record that needs it is written.
//
// A damaged object or pack is Code::kCorrupt and named. Not for two threads at
// once; open a store for each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/hash.h"
#include "base/result.h"
#include "fs/view.h"
#include "snapshot/object_pack.h"

namespace stoplog::snapshot {

class ObjectStore {
 public:
  // `dir` is the store's own directory; made complete when empty. Duplicated.
  static Result<ObjectStore> open(int dir);

  // Held while objects are put and until what refers to them is durable.
  class Use {
   public:
    explicit Use(Fd lock) : lock_(std::move(lock)) {}

   private:
    Fd lock_;
  };
  Result<Use> use() const;

  Result<Sha256Digest> put(const fs::Content& content);
  Result<PackWriter> new_pack() const;

  Result<bool> has(const Sha256Digest& id);
  Result<uint64_t> size(const Sha256Digest& id);  // of the content
  // In memory; refused with EFBIG when larger than `limit`.
  Result<std::string> get(const Sha256Digest& id, uint64_t limit);
  // Into an empty file, which gets the size and the holes of the content. On
  // an error what the file holds is worthless.
  Status get_into(const Sha256Digest& id, int fd);
  // Verified on opening: small content stands in memory, large in an unlinked
  // file of the store.
  Result<std::shared_ptr<const fs::Content>> content(const Sha256Digest& id);

  struct Info {
    Sha256Digest id;
    uint64_t size = 0;    // of the content
    uint64_t stored = 0;  // bytes on disk
    std::string pack;     // empty: loose
  };
  // Everything stored; an object may be there twice.
  Result<std::vector<Info>> list();
  // Reads everything; one sentence for each damaged object.
  Result<std::vector<std::string>> verify();

  struct Swept {
    uint64_t objects = 0;
    uint64_t bytes = 0;  // freed on disk
  };
  using Live = std::function<Result<std::set<Sha256Digest>>()>;
  // Removes what is not in live(): loose objects, and packs none of whose
  // objects is needed; a pack that is more than half dead is written anew.
  // Waits for users of the store to end; EWOULDBLOCK when `wait` is false.
  // live() is asked only then: what a user put there is on record by now.
  Result<Swept> sweep(const Live& live, bool wait = true);

 private:
  ObjectStore(Fd dir, Fd loose, Fd packs)
      : dir_(std::move(dir)),
        loose_(std::move(loose)),
        packs_(std::move(packs)) {}
  struct Place {
    int fd;
    uint64_t offset, length;
  };
  Result<std::optional<Place>> find(const Sha256Digest& id);
  Result<Place> find_or_fail(const Sha256Digest& id);
  Status load_packs();
  Result<uint64_t> sweep_pack(const std::string& name,
                              const std::set<Sha256Digest>& live, Swept& swept);

  Fd dir_, loose_, packs_;
  Fd last_loose_;  // of the last find()
  std::map<std::string, PackReader> readers_;
  std::vector<std::string> damaged_packs_;
  ObjectEncoder encoder_;
  ObjectDecoder decoder_;
};

}  // namespace stoplog::snapshot
