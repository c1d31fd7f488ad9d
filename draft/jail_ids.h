// SPDX-License-Identifier: Apache-2.0
// A number for the user of root's jail that is the draft's and nobody's on the
// host, and that there is where we are: in a container's user namespace most
// numbers are not. Pure.
//
//   auto id = jail_id(TRY(sys::read_file(..."/proc/self/uid_map")), hash);
//
// Outside of containers far above what distributions and subuid ranges give out
// (they end at 1,878,982,656), below 2^31, one in a hundred million. In a
// namespace without these, of the last quarter of its largest range, but for
// the end, where nobody and dynamic users are: one in 8192 of the usual 65536.
// None where there are fewer than 4096 in a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stoplog::draft {

std::optional<uint32_t> jail_id(std::string_view id_map, uint64_t hash);

}  // namespace stoplog::draft
