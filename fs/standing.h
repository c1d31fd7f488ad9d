// SPDX-License-Identifier: Apache-2.0
// Where living readers stand: a review that is open for hours, a commit that
// waits at its prompt. A reader locks the byte of its position's number in the
// file of the generation that holds it; gc keeps what is needed there. The
// kernel lets go of it with the process, nothing is written, and no daemon has
// to know: a reader may have come when there was none.
//
//   Fd stand = stand_on(draft_dir, generation, at);     // until it is closed
//   for (Position at : TRY(stood_on(generations))) ...
//
// Generations that a fork shares have the readers of both.
#pragma once

#include <set>

#include "base/fd.h"
#include "fs/generations.h"

namespace stoplog::fs {

// No fd where the file system has no such locks: the reader then has the hour
// that its mark is kept anyway.
Fd stand_on(int draft_dir, uint32_t generation, Position at);
// Code::kCorrupt when a generation is damaged.
Result<std::set<Position>> stood_on(Generations& generations);

}  // namespace stoplog::fs
