// SPDX-License-Identifier: Apache-2.0
// HOME inside: where it is, what of the real one may be read through it, and
// the little of the user's git configuration that a commit needs. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stoplog::jail {

// The real HOME's path, or another one when that would lie in the workspace:
// nothing is mounted beneath the workspace.
std::string choose_home(const std::string& real_home,
                        const std::string& workspace);

// Package caches, relative to HOME: the lower side of HOME shows these and
// nothing else, so that installs find what is there already. None of them
// holds a credential.
std::span<const char* const> home_caches();
// A path of the real HOME: nothing of it shows, or it is a directory on the way
// to a cache (or a cache's top), or it is something in a cache.
enum class HomePath : uint8_t { kHidden, kWay, kCache };
HomePath home_path(std::string_view path);

// user.*, init.* and core.autocrlf of a git configuration file, as a new one.
// Includes and everything that could run a program are not taken.
std::string filter_git_config(std::string_view text);

}  // namespace stoplog::jail
