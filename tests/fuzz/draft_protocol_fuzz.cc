// SPDX-License-Identifier: Apache-2.0
// fuzz: sources draft/protocol.cc
//
// The control socket's packets and each message in them: shape is checked, a
// lie about a count takes no memory, and what decodes is encoded to the same.
#include "draft/protocol.h"
#include "fuzz.h"

using namespace stoplog::draft;

namespace {

template <typename T>
void check(std::string_view bytes) {
  auto record = decode<T>(bytes);
  if (!record) return;
  std::string once = encode(*record);
  auto again = decode<T>(once);
  require(again.has_value());
  require(encode(*again) == once);
}

}  // namespace

void fuzz(std::string_view input) {
  (void)parse_packet(stoplog::Frame{.data = std::string(input), .fds = {}});
  if (input.empty()) return;
  std::string_view bytes = input.substr(1);
  switch (input[0] % 12) {
    case 0:
      return check<Hello>(bytes);
    case 1:
      return check<Welcome>(bytes);
    case 2:
      return check<ErrorReply>(bytes);
    case 3:
      return check<Shutdown>(bytes);
    case 4:
      return check<RunRequest>(bytes);
    case 5:
      return check<RunStarted>(bytes);
    case 6:
      return check<RunEvent>(bytes);
    case 7:
      return check<Signal>(bytes);
    case 8:
      return check<Rollback>(bytes);
    case 9:
      return check<CommitBase>(bytes);
    case 10:
      return check<DaemonStatus>(bytes);
    default:
      return check<MarkList>(bytes);
  }
}
