// SPDX-License-Identifier: Apache-2.0
#include "diff/risk_node.h"

#include <algorithm>

#include "diff/git_sort.h"
#include "diff/link_target.h"
#include "diff/select.h"

namespace stoplog::diff {
namespace {

// An emptied file of a few bytes is an ordinary edit.
constexpr uint64_t kWorthKeeping = 64;
constexpr uint64_t kLongFile = 1024;

constexpr RuleInfo kNodeRules[] = {
    {"deletion", Level::kDanger, "git has no copy: gone once committed"},
    {"deletion-generated", Level::kWarn, "ignored build output, made again"},
    {"truncation", Level::kDanger, "a deletion that looks like an edit"},
    {"setuid", Level::kDanger, "runs with the rights of its owner"},
    {"file-capability", Level::kDanger, "runs with rights of root"},
    {"symlink-outside", Level::kDanger, "writes through it land elsewhere"},
    {"symlink-system", Level::kWarn, "points at a program of the system"},
    {"symlink-package", Level::kDanger,
     "npm runs more of an installed package"},
    {"special-file", Level::kDanger, "readers block on it or reach a device"},
    {"too-deep", Level::kDanger, "holds what nobody has looked at"},
    {"git-link", Level::kDanger, "names another directory as the repository"},
    {"git-part", Level::kDanger, "git writes through it, wherever it leads"},
    {"executable", Level::kWarn, "can be started by name"},
    {"program", Level::kWarn, "machine code that cannot be reviewed"},
    {"binary", Level::kWarn, "cannot be reviewed by reading"},
    {"media", Level::kInfo, "a picture, font or document"},
    {"large-file", Level::kWarn, "nobody looks for secrets in it"},
    {"locked", Level::kDanger, "its owner cannot take it back by an undo"},
    {"world-writable", Level::kWarn, "every user of the machine can change it"},
    {"owner", Level::kWarn, "belongs to somebody else afterwards"},
    {"hardlink-detached", Level::kWarn, "other names keep the old content"},
};

class NodeRisks {
 public:
  NodeRisks(const Subject& subject, std::vector<Risk>& risks)
      : subject_(subject), change_(subject.change), risks_(risks) {}

  void run() {
    if (!change_.after) return deletion();
    const fs::NodeState& after = *change_.after;
    switch (after.type) {
      case fs::Type::kFile:
        file(after);
        break;
      case fs::Type::kSymlink:
        symlink(after);
        break;
      case fs::Type::kDir:
        if (change_.too_deep != 0)
          add("too-deep",
              fmt::format("{} names beneath it are too deep to be shown: they "
                          "stay held",
                          change_.too_deep));
        break;
      default:
        add("special-file",
            "a FIFO, socket or device: nothing that belongs in a workspace");
    }
    if (change_.path.name() == ".git" && after.type != fs::Type::kDir)
      add("git-link", "names another directory as this tree's repository");
    else if (is_inside_git(change_.path) && is_foreign_git_part(change_))
      add("git-part",
          fmt::format("a {} inside a git directory, where git makes files: "
                      "what git writes there may land elsewhere",
                      fs::name_of(after.type)));
    if (change_.kind == Kind::kType) deletion();
    attributes(after);
  }

 private:
  void add(std::string_view code, std::string message) {
    auto rule =
        std::find_if(std::begin(kNodeRules), std::end(kNodeRules),
                     [&](const RuleInfo& info) { return info.code == code; });
    risks_.push_back({rule->level, std::string(code), std::move(message)});
  }

  void deletion() {
    const fs::NodeState& before = *change_.before;
    if (before.type == fs::Type::kDir || subject_.restorable) return;
    if (change_.ignored && is_generated(change_.path)) {
      add("deletion-generated", "deletes build output that git ignores");
    } else if (before.type == fs::Type::kFile && before.size == 0) {
      return;  // nothing is lost with an empty file
    } else if (before.type == fs::Type::kSymlink) {
      return;  // its whole content is in the patch
    } else {
      add("deletion", "deletes what git cannot restore");
    }
  }

  static bool is_generated(const RelPath& path) {
    constexpr std::string_view kMade[] = {
        "node_modules",  "__pycache__",   "target",     "build",
        "dist",          ".venv",         "venv",       "out",
        ".cache",        ".next",         ".tox",       ".nox",
        ".gradle",       ".pytest_cache", "coverage",   ".mypy_cache",
        ".ruff_cache",   "bin",           "obj",        ".turbo",
        ".parcel-cache", "CMakeFiles",    ".nyc_output"};
    constexpr std::string_view kEnds[] = {".o",   ".a",   ".so",  ".pyc",
                                          ".obj", ".lo",  ".la",  ".class",
                                          ".d",   ".gch", ".log", ".tmp"};
    for (std::string_view part : path.components())
      if (std::find(std::begin(kMade), std::end(kMade), part) !=
          std::end(kMade))
        return true;
    return std::any_of(
        std::begin(kEnds), std::end(kEnds),
        [&](std::string_view end) { return path.name().ends_with(end); });
  }

  void file(const fs::NodeState& after) {
    const auto& before = change_.before;
    bool was_file = before && before->type == fs::Type::kFile;
    if (was_file && change_.content_changed) truncation(before->size);
    bool runs = (after.mode & 0111) != 0;
    if (runs && (!was_file || (before->mode & 0111) == 0))
      add("executable", "can be executed");
    if (change_.content_changed) {
      binary();
      if (after.size > kTextLimit)
        add("large-file",
            fmt::format("{} MiB in one file: what is in it was not looked at",
                        after.size >> 20));
    }
  }

  void truncation(uint64_t old_size) {
    uint64_t size = change_.after->size;
    bool emptied = size == 0 && old_size >= kWorthKeeping;
    bool nearly = old_size >= kLongFile && size * 20 <= old_size;
    if (emptied || nearly)
      add("truncation", fmt::format("cut from {} to {} bytes", old_size, size));
  }

  void binary() {
    if (!subject_.new_text) return;
    std::string_view text = *subject_.new_text;
    std::string_view head = text.substr(0, 4);
    if (head ==
            "\x7f"
            "ELF" ||
        head == "\xfe\xed\xfa\xce" || head == "\xfe\xed\xfa\xcf" ||
        head == "\xcf\xfa\xed\xfe" || head == "\xca\xfe\xba\xbe" ||
        (head.starts_with("MZ") && text.size() > 64))
      return add("program", "machine code: cannot be reviewed by reading");
    if (text.find('\0') == std::string_view::npos) return;
    if (is_media(change_.path.name())) {
      add("media", "a picture, font or document");
    } else {
      add("binary", "binary content: cannot be reviewed by reading");
    }
  }

  static bool is_media(std::string_view name) {
    constexpr std::string_view kEnds[] = {
        ".png", ".jpg",  ".jpeg",  ".gif", ".webp", ".ico", ".bmp", ".avif",
        ".pdf", ".woff", ".woff2", ".ttf", ".otf",  ".mp3", ".mp4", ".ogg",
        ".wav", ".webm", ".eot",   ".tif", ".tiff", ".flac"};
    return std::any_of(
        std::begin(kEnds), std::end(kEnds),
        [&](std::string_view end) { return name.ends_with(end); });
  }

  static bool names_node_modules(std::string_view path) {
    return ("/" + std::string(path) + "/").find("/node_modules/") !=
           std::string::npos;
  }

  void symlink(const fs::NodeState& after) {
    if (!change_.content_changed && !change_.from) return;
    if (names_node_modules(after.target) &&
        !names_node_modules(change_.path.str()))
      add("symlink-package",
          fmt::format("symlink to '{}': npm takes what is there for a package "
                      "of yours, and runs its scripts unasked at install",
                      after.target));
    if (!leaves_workspace(subject_.view, change_.path, after.target,
                          subject_.real_root))
      return;
    constexpr std::string_view kSystem[] = {"/usr/", "/bin/", "/lib/",
                                            "/lib64/", "/sbin/"};
    bool system = after.target.find("..") == std::string::npos &&
                  std::any_of(std::begin(kSystem), std::end(kSystem),
                              [&](std::string_view top) {
                                return after.target.starts_with(top);
                              });
    if (system) {
      add("symlink-system",
          fmt::format("symlink to '{}', a file of the system", after.target));
    } else {
      add("symlink-outside",
          fmt::format("symlink to '{}', outside the workspace", after.target));
    }
  }

  void attributes(const fs::NodeState& after) {
    const auto& before = change_.before;
    mode_t old_mode = before ? before->mode : 0;
    mode_t gained = after.mode & ~old_mode;
    bool link = after.type == fs::Type::kSymlink;
    bool file = after.type == fs::Type::kFile;
    // What such a program does is new as well.
    mode_t privileged = change_.content_changed ? after.mode : gained;
    if (file && (privileged & (S_ISUID | S_ISGID)) != 0)
      add("setuid", fmt::format("setuid or setgid: mode {:04o}", after.mode));
    if (is_locked(after) && !(before && is_locked(*before))) {
      // What package caches are made of.
      const bool is_read = (after.mode & 0500) == 0500;
      risks_.push_back(
          {is_read ? Level::kWarn : Level::kDanger, "locked",
           fmt::format("its owner {} (mode {:04o}): an undo that is not root's "
                       "fails there",
                       is_read ? "may not change it" : "may not look at it",
                       after.mode)});
    }
    if (!link && (gained & S_IWOTH) != 0 && (after.mode & S_ISVTX) == 0)
      add("world-writable",
          fmt::format("writable by every user: mode {:04o}", after.mode));
    auto capability = after.xattrs.find("security.capability");
    if (capability != after.xattrs.end() &&
        !(before && !change_.content_changed &&
          before->xattrs.contains("security.capability") &&
          before->xattrs.at("security.capability") == capability->second))
      add("file-capability", "carries file capabilities, rights of root");
    if (before && (before->uid != after.uid || before->gid != after.gid))
      add("owner", fmt::format("owner {}:{} becomes {}:{}", before->uid,
                               before->gid, after.uid, after.gid));
    if (change_.detaches_links)
      add("hardlink-detached",
          "other hard links of this file keep the old content");
  }

  const Subject& subject_;
  const Change& change_;
  std::vector<Risk>& risks_;
};

}  // namespace

bool is_locked(const fs::NodeState& state) {
  const mode_t needed = state.type == fs::Type::kDir    ? 0700
                        : state.type == fs::Type::kFile ? 0400
                                                        : 0;
  return (state.mode & needed) != needed;
}

void add_node_risks(const Subject& subject, std::vector<Risk>& risks) {
  NodeRisks(subject, risks).run();
}

std::span<const RuleInfo> node_rules() { return kNodeRules; }

}  // namespace stoplog::diff
