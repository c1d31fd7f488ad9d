// SPDX-License-Identifier: Apache-2.0
#include "draft/shape.h"

#include "base/hash.h"
#include "draft/wire.h"

namespace stoplog::draft {

std::string Shape::to_text() const {
  std::string bytes = encode(*this);
  return hex(
      {reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()});
}

Result<Shape> Shape::from_text(std::string_view text) {
  std::string bytes(text.size() / 2, '\0');
  TRY(unhex(text,
            {reinterpret_cast<unsigned char*>(bytes.data()), bytes.size()}));
  return decode<Shape>(bytes);
}

std::string Shape::digest() const {
  Shape bare = *this;
  bare.mount.clear();
  return hex(sha256(encode(bare)));
}

}  // namespace stoplog::draft
