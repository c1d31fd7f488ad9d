// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "base/sys_file.h"
#include "cli/command.h"
#include "cli/marks.h"
#include "cli/opened.h"
#include "draft/ledger.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"json"}};

// Into the new draft's directory, under both locks.
Status fork_tree(Context& context, Opened& opened, const draft::Draft& made,
                 fs::Position at) {
  const draft::Layout& layout = *TRY(context.layout());
  std::string path = layout.draft(made.id);
  draft::DraftLock lock =
      TRY(draft::DraftLock::take(layout, made.id, draft::LockMode::kExclusive));
  if (opened.daemon) return opened.daemon->fork(path, at);
  Fd dir = TRY(sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
  return with_tree(context, opened, [&](fs::Tree& tree) {
    return tree.fork_into(dir.get(), at);
  });
}

Result<int> run(Context& context, const Args& args) {
  draft::Draft draft = TRY(context.need_draft());
  Opened opened = TRY(open_draft(context, draft, {}));
  fs::Position at = opened.view->position();
  std::string mark = "now";
  if (args.positionals.size() > 1) {
    mark = args.positionals[1];
    at = TRY(find_mark(opened.view->marks(), mark)).position;
  }
  draft::Store& store = *TRY(context.store());
  draft::Draft made = TRY(store.create({.workspace = *TRY(context.workspace()),
                                        .name = args.positionals[0],
                                        .forked_from = draft.id}));
  Status forked = fork_tree(context, opened, made, at);
  if (!forked) {
    (void)store.remove(made.id);
    return std::unexpected(std::move(forked).error().context(
        fmt::format("cannot fork draft '{}'", draft.name)));
  }
  for (const draft::Draft* d : {&draft, &made}) {
    draft::Ledger ledger =
        TRY(draft::Ledger::open(*TRY(context.layout()), d->id));
    Json fields = Json::object();
    fields.set("from", draft.name).set("name", made.name).set("mark", mark);
    TRY(ledger.append("fork", fields, Sync::kNo));
  }
  if (args.has("json"))
    context.out.write(Json::object()
                          .set("version", 1)
                          .set("name", made.name)
                          .set("id", made.id)
                          .dump() +
                      "\n");
  else
    context.out.write(made.name + "\n");
  context.out.hint(
      fmt::format("'{}' stays the current draft: `stoplog switch {}`, or -d {}",
                  draft.name, made.name, made.name));
  return 0;
}

}  // namespace

extern const Command k_fork_command{
    .name = "fork",
    .summary = "a second draft from a mark of this one",
    .help =
        "usage: stoplog fork NAME [MARK] [--json]\n"
        "\n"
        "Makes a second draft NAME over the same workspace that holds what "
        "this\n"
        "one held at MARK (default: now). Data is shared, so it costs little.\n"
        "The current draft stays the current one.\n"
        "\n"
        "      --json  for programs\n"
        "\n"
        "example: stoplog fork other-way @3\n",
    .options = kOptions,
    .min = 1,
    .max = 2,
    .run = run};

}  // namespace stoplog::cli
