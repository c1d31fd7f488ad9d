// SPDX-License-Identifier: Apache-2.0
// fuzz: sources fs/records.cc
//
// Payloads of the journal: any bytes decode or are refused, and what decodes is
// encoded and decoded again to the same bytes.
#include "fs/records.h"
#include "fuzz.h"

using namespace stoplog::fs;

void fuzz(std::string_view input) {
  if (input.empty()) return;
  auto type = static_cast<uint16_t>(static_cast<unsigned char>(input[0]) % 40);
  auto record = decode(type, input.substr(1));
  if (!record) return;
  std::string once;
  encode(*record, once);
  auto again = decode(type, once);
  require(again.has_value());
  std::string twice;
  encode(*again, twice);
  require(once == twice);
}
