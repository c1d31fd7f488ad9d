// SPDX-License-Identifier: Apache-2.0
// The content of an object, read from the store when it is asked for and let go
// at its end: an undo of thousands of files has in memory, and open, those that
// are being written.
//
//   StoredContents contents(store);
//   item.content = TRY(contents.of(id, size));
//
// Any thread, one at a time. The store is borrowed, and must outlive all of it.
#pragma once

#include <memory>
#include <mutex>

#include "base/hash.h"
#include "base/result.h"
#include "fs/view.h"
#include "snapshot/objects.h"

namespace stoplog::gate {

class StoredContents {
 public:
  explicit StoredContents(snapshot::ObjectStore& store)
      : shared_(std::make_shared<Shared>(store)) {}
  // One that is not in the store is an error at once.
  Result<std::shared_ptr<const fs::Content>> of(const Sha256Digest& id,
                                                uint64_t size);

 private:
  struct Shared {
    explicit Shared(snapshot::ObjectStore& objects) : store(objects) {}
    snapshot::ObjectStore& store;  // guarded by mutex: one thread at a time
    std::mutex mutex;
  };
  class Stored;
  std::shared_ptr<Shared> shared_;
};

}  // namespace stoplog::gate
