// SPDX-License-Identifier: Apache-2.0
// `diff --html`: one page that needs nothing else. No script, no link, no
// image; a policy in its head forbids them, and every byte of a tree is
// escaped twice, once for eyes and once for HTML.
#include <algorithm>

#include "base/escape.h"
#include "diff/file_patch.h"
#include "diff/git_meta.h"
#include "diff/paint.h"
#include "diff/render.h"

namespace stoplog::diff {
namespace {

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>stoplog diff</title><style>
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;
 padding:0 1rem;color:#1b1f24;background:#fff}
table{border-collapse:collapse;width:100%}
td{padding:.15rem .6rem;vertical-align:top;border-bottom:1px solid #d8dee4}
code,pre{font:13px/1.45 ui-monospace,monospace}
pre{overflow-x:auto;border:1px solid #d8dee4;border-radius:6px;margin:.5rem 0 2rem}
pre span{display:block;padding:0 .8rem;white-space:pre}
.add{background:#dafbe1}.del{background:#ffebe9}.hunk{background:#ddf4ff}
.head{font-weight:600}.danger{color:#a40e26;font-weight:600}.warn{color:#7d4e00}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}
 td,pre{border-color:#30363d}.add{background:#12361f}.del{background:#4a1a1c}
 .hunk{background:#12304d}.danger{color:#ff7b72}.warn{color:#e3b341}}
</style></head><body>
)";

std::string html(std::string_view text, Escape what = Escape::kName) {
  std::string out;
  for (char c : escape(text, what)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Our own patch, line by line. As on the terminal, announced lines of a hunk
// are counted, so no content passes for a header.
class Page {
 public:
  Page(unsigned max_columns, const Sink& sink)
      : max_columns_(max_columns), sink_(sink) {}

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
    std::string_view css = "head";
    if (counter_.is_content(text)) {
      css = text[0] == '+' ? "add" : text[0] == '-' ? "del" : "";
    } else if (text.starts_with("@@ ")) {
      counter_.start(text);
      css = "hunk";
    }
    std::string cut;
    if (max_columns_ > 0 && text.size() > max_columns_) {
      cut = fmt::format("… ({} bytes of this line are not shown)",
                        text.size() - max_columns_);
      text = text.substr(0, max_columns_);
    }
    sink_(fmt::format("<span class=\"{}\">{}{}</span>", css,
                      html(text, Escape::kLine), cut));
  }

  unsigned max_columns_;
  const Sink& sink_;
  std::string pending_;
  HunkCounter counter_;
};

void write_row(const Change& change, size_t number, const Sink& sink) {
  std::string notes;
  for (const Risk& risk : change.risks)
    notes +=
        fmt::format("<div class=\"{}\">{} {}: {}</div>", name_of(risk.level),
                    name_of(risk.level), html(risk.code), html(risk.message));
  if (change.drift)
    notes += fmt::format("<div class=\"danger\">drift: {}</div>",
                         html(*change.drift));
  if (change.git) notes += html(change.git->summary());
  std::string counts;
  if (change.lines_added || change.lines_deleted)
    counts = fmt::format("+{} -{}", change.lines_added.value_or(0),
                         change.lines_deleted.value_or(0));
  sink(fmt::format(
      "<tr><td>{}</td><td><a href=\"#c{}\"><code>{}</code></a>{}"
      "</td><td>{}</td><td>{}</td></tr>\n",
      letter_of(change), number, html(change.shown_path()),
      change.from ? " was <code>" + html(change.from->str()) + "</code>" : "",
      counts, notes));
}

}  // namespace

Status render_html(const fs::View&, const ChangeSet& set,
                   const RenderOptions& options, const Sink& sink) {
  sink(kHead);
  if (set.digest)
    sink(fmt::format("<p>digest <code>sha256:{}</code></p>\n",
                     hex(*set.digest)));
  std::vector<size_t> shown = display_order(set);
  std::erase_if(shown, [&](size_t i) {
    return !is_listed(set.changes[i], options.ignored, options.paths);
  });
  sink(fmt::format("<h1>{}</h1>\n<table>\n",
                   plural(shown.size(), "change", "changes")));
  for (size_t i : shown) write_row(set.changes[i], i, sink);
  for (const Group& group : set.groups)
    sink(
        fmt::format("<tr><td></td><td><code>{}</code></td><td></td><td>{}: "
                    "{} files, {} bytes, {} deleted</td></tr>\n",
                    html(group.path), group.reason, group.files, group.bytes,
                    group.deleted));
  sink("</table>\n");
  for (size_t i : shown) {
    const Change& change = set.changes[i];
    sink(fmt::format("<h2 id=\"c{}\"><code>{}</code></h2>\n<pre>", i,
                     html(change.shown_path())));
    Page page(options.max_columns, sink);
    std::vector<std::string> left_out;
    FilePatchOptions file{.context = options.context, .literals = false};
    if (!change.git && !change.is_moved_directory())
      TRY(write_file_patch(change, file, left_out,
                           [&](std::string_view text) { page.take(text); }));
    for (const std::string& why : left_out)
      sink("<span>" + html(why) + "</span>");
    if (change.too_large) sink("<span>too large to be shown by lines</span>");
    sink("</pre>\n");
  }
  sink("</body></html>\n");
  return {};
}

}  // namespace stoplog::diff
