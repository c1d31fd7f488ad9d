// SPDX-License-Identifier: Apache-2.0
// Answers of a terminal that nobody waits for any more. A program may ask a
// terminal for reports or switch the mouse on, and end; what comes then would
// be read by whoever reads next, and may hold any letter.
//
//   sys::await_answers(0, 1, 500ms);   // raw: what was asked for before
//   sys::forget_input(0, 2);           // before a question whose answer is a
//   line
//
// A terminal answers in order: it is asked something itself, and what comes up
// to its answer and a short silence is read away before `most` is over.
#pragma once

#include <chrono>
#include <string_view>

namespace stoplog::sys {

// `in` is in raw mode. True when the terminal has answered.
bool await_answers(int in, int screen, std::chrono::milliseconds most);

// The same in any mode, which is put back, for who is in the foreground of a
// terminal; what was typed ahead goes too. Else nothing is done, nor where the
// terminal has no name for what it is (TERM unset or dumb): that answers
// nobody.
void forget_input(int in, int screen);

// Could a person have typed this line as an answer: no escape sequence in it,
// no control character but a tab?
bool is_typed(std::string_view line);

}  // namespace stoplog::sys
