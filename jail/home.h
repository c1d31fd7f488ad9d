// SPDX-License-Identifier: Apache-2.0
// HOME inside: where it is, what of the real one may be read through it, and
// the little of the user's git configuration that a commit needs. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stoplog::jail {

// The real HOME's path, or another one when that would lie in the workspace:
// nothing is mounted beneath the workspace.
std::string choose_home(const std::string& real_home,
                        const std::string& workspace);

// Package caches, relative to HOME: what HOME's lower side is to show, and
// nothing else (it shows nothing yet). None of them holds a credential.
std::span<const char* const> home_caches();

// user.*, init.* and core.autocrlf of a git configuration file, as a new one.
// Includes and everything that could run a program are not taken.
std::string filter_git_config(std::string_view text);

}  // namespace stoplog::jail
