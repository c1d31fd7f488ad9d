// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"
#include "base/units.h"
#include "diff/file_patch.h"
#include "diff/git_meta.h"
#include "diff/ordered_writer.h"
#include "diff/paint.h"
#include "diff/render.h"
#include "diff/select.h"

namespace stoplog::diff {
namespace {

// Takes a patch of our own making in pieces, and gives it line by line:
// content escaped, tabs expanded, everything coloured.
class Colouring {
 public:
  Colouring(const RenderOptions& options, const Sink& sink)
      : options_(options), sink_(sink) {}

  void take(std::string_view text) {
    while (!text.empty()) {
      size_t newline = text.find('\n');
      pending_ += text.substr(0, newline);
      if (newline == std::string_view::npos) return;
      line(pending_);
      pending_.clear();
      text.remove_prefix(newline + 1);
    }
  }

 private:
  void line(std::string_view text) {
    if (counter_.is_content(text)) return content(text[0], text.substr(1));
    if (text.starts_with("@@ ")) {
      counter_.start(text);
      size_t end = text.find(" @@", 3);
      std::string_view range = text.substr(0, end + 3);
      sink_(paint(options_.color, Ink::kCyan, range) +
            escape(text.substr(range.size()), Escape::kLine) + "\n");
      return;
    }
    if (text.starts_with("\\")) return sink_(std::string(text) + "\n");
    // git ends a name that has spaces with a tab; programs look for it.
    bool tab = text.ends_with('\t');
    if (tab) text.remove_suffix(1);
    sink_(paint(options_.color, Ink::kBold, escape(text)) +
          (tab ? "\t\n" : "\n"));
  }

  void content(char origin, std::string_view text) {
    std::string out(1, origin);
    // Bounded before the work of escaping: a line can be 8 MiB long.
    size_t shown = options_.max_columns == 0
                       ? text.size()
                       : std::min<size_t>(text.size(), options_.max_columns);
    out += expand(escape(text.substr(0, shown), Escape::kLine));
    if (shown < text.size())
      out += fmt::format("… ({} bytes of this line are not shown)",
                         text.size() - shown);
    Ink ink = origin == '+' ? Ink::kGreen : Ink::kRed;
    sink_((origin == ' ' ? out : paint(options_.color, ink, out)) + "\n");
  }

  std::string expand(const std::string& text) const {
    if (text.find('\t') == std::string::npos) return text;
    std::string out;
    size_t column = 0;
    std::string_view rest = text;
    while (!rest.empty()) {
      std::string_view start = rest;
      Decoded decoded = take_utf8(rest);
      if (decoded.c == '\t') {
        size_t stop = options_.tab - column % options_.tab;
        out.append(stop, ' ');
        column += stop;
        continue;
      }
      out += start.substr(0, start.size() - rest.size());
      column += static_cast<size_t>(width_of(decoded.c));
    }
    return out;
  }

  const RenderOptions& options_;
  const Sink& sink_;
  std::string pending_;
  HunkCounter counter_;
};

// What stands above a file's patch: its risks, and what a patch cannot say.
void write_remarks(const Change& change, const RenderOptions& options,
                   const Sink& sink) {
  auto remark = [&](Ink ink, std::string_view text) {
    sink(shown_line(paint(options.color, ink, fmt::format("# {}", text)),
                    "#     ", options));
  };
  std::string name = escape(change.shown_path());
  if (change.is_moved_directory())
    remark(Ink::kBold, fmt::format("{} was {}: the directory moved with all "
                                   "beneath it",
                                   name, escape(change.from->str())));
  if (change.git)
    remark(Ink::kBold,
           fmt::format("{}: {}", name, escape(change.git->summary())));
  for (const Risk& risk : change.risks)
    remark(risk.level == Level::kDanger ? Ink::kAlarm : Ink::kYellow,
           fmt::format("{} {} {}: {}", name, name_of(risk.level),
                       escape(risk.code), escape(risk.message)));
  if (change.drift)
    remark(Ink::kAlarm,
           fmt::format("{} drift: {}", name, escape(*change.drift)));
  if (change.too_large)
    remark(Ink::kYellow,
           fmt::format("{} is too large to be shown by lines ({})", name,
                       print_size(change.size())));
  if (change.before && change.after &&
      change.before->type == change.after->type &&
      change.before->mode != change.after->mode &&
      git_mode(change.before) == git_mode(change.after))
    remark(Ink::kYellow,
           fmt::format("{} mode {} → {}", name, mode_text(*change.before),
                       mode_text(*change.after)));
}

Status write_change(const Change& change, const RenderOptions& options,
                    const Sink& sink) {
  write_remarks(change, options, sink);
  if (change.git || change.is_moved_directory()) return {};
  Colouring colouring(options, sink);
  FilePatchOptions file{.context = options.context, .exact = false};
  std::vector<std::string> left_out;
  TRY_CTX(
      write_file_patch(change, file, left_out,
                       [&](std::string_view text) { colouring.take(text); }),
      fmt::format("cannot show '{}'", escape(change.path.str())));
  for (const std::string& why : left_out)
    sink(paint(options.color, Ink::kYellow, "# " + escape(why)) + "\n");
  return {};
}

}  // namespace

Status render_terminal(const fs::View&, const ChangeSet& set,
                       const RenderOptions& options, const Sink& sink) {
  OrderedWriter writer(0, sink);
  std::vector<size_t> order = display_order(set);
  for (size_t done = 0; done < order.size(); done++) {
    if (options.progress && done % 256 == 0 &&
        !options.progress(done, order.size()))
      break;
    const Change& change = set.changes[order[done]];
    if (!is_listed(change, options.ignored, options.paths)) continue;
    TRY(writer.add(size_to_read(change), [&](const Sink& out) {
      return write_change(change, options, out);
    }));
  }
  return writer.flush();
}

}  // namespace stoplog::diff
