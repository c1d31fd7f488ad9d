// SPDX-License-Identifier: Apache-2.0
#include "cli/review_screen.h"

#include <unistd.h>

#include <array>
#include <exception>
#include <utility>

#include "base/sys_file.h"
#include "base/sys_terminal.h"
#include "cli/exit_codes.h"
#include "cli/review_layout.h"
#include "cli/review_model.h"
#include "cli/review_terminal.h"
#include "cli/review_text.h"
#include "cli/review_wait.h"
#include "cli/words.h"

namespace stoplog::cli {
namespace {

// After this long without a key, decisions are saved.
constexpr int kPauseMs = 700;
// How far the work is, is told this often.
constexpr int kProgressMs = 100;
// A paste or a held key is taken in gulps, so that the screen follows.
constexpr int kKeysAFrame = 64;
// A terminal that is always ready and never has a key is gone.
constexpr int kEmptyReads = 100;

using Makers = Background<FileMakers>;

class MakerLoader : public MakerSource {
 public:
  static Result<std::unique_ptr<MakerLoader>> create(
      const ReviewRequest& request) {
    auto out = std::make_unique<MakerLoader>();
    if (!request.makers) return out;
    out->makers_ = TRY(Makers::create(
        [&request](size_t index, const Makers::Unwanted& unwanted) {
          return request.makers(request.set.changes[index], unwanted);
        }));
    return out;
  }
  std::shared_ptr<const FileMakers> get(size_t index) override {
    return makers_->get(index);
  }
  bool looks() const { return makers_ != nullptr; }
  int fd() const { return makers_ ? makers_->fd() : -1; }
  void drain() {
    if (makers_) makers_->drain();
  }

 private:
  std::unique_ptr<Makers> makers_;
};

// What a review stands on.
struct Ground {
  FileLoader& loader;
  MakerLoader& makers;
  Terminal& terminal;
  sys::SignalWatch& signals;
};

class Session {
 public:
  // `work`: what is to be reviewed is being looked for, and this is what can
  // be read until that is done.
  Session(ReviewRequest& request, Ground ground,
          const Preparation* work = nullptr)
      : request_(request),
        loader_(ground.loader),
        makers_(ground.makers),
        terminal_(ground.terminal),
        signals_(ground.signals),
        work_(work),
        model_({.set = request.set,
                .decisions = request.decisions,
                .files = loader_,
                .looked = std::move(request.looked),
                .title = request.title,
                .command_text = request.command_text,
                .can_commit = request.commit != nullptr,
                .ignored = request.ignored,
                .makers = makers_.looks() ? &makers_ : nullptr,
                .early = work != nullptr}) {}

  // Before run(): the reader was on another one.
  void go_on_from(const Session& early) { model_.go_on_from(early.model_); }
  const ReviewModel& model() const { return model_; }
  // The work was done before the reader left.
  bool is_ready() const { return ready_; }

  Result<ReviewEnd> run() {
    model_.resize(terminal_.columns(), terminal_.rows());
    while (!over_) {
      draw();
      TRY(wait());
      if (over_) break;
      take_signals();
      take_keys();
      if (model_.busy()) {
        loader_.drain();
        model_.poll();
      }
      if (model_.awaits_makers()) {
        makers_.drain();
        model_.poll_makers();
      }
      take_wish();
    }
    save();
    end_.undecided = model_.undecided();
    end_.approved = model_.approved();
    return end_;
  }

 private:
  void draw() {
    if (work_ != nullptr) model_.set_progress(work_->done(), work_->total());
    terminal_.paint(layout(model_, {.ascii = terminal_.ascii()}));
    size_t before = model_.unseen_dangers();
    model_.shown();
    if (model_.unseen_dangers() != before)  // the title counts them
      terminal_.paint(layout(model_, {.ascii = terminal_.ascii()}));
  }

  Status wait() {
    // A search goes on by itself; a file that is being read reports.
    bool searching = model_.busy() && model_.open().loaded;
    unsaved_ = model_.take_dirty() || unsaved_;
    // What nobody waits for any more would wake us for ever.
    int files = model_.busy() ? loader_.fd() : -1;
    int makers = model_.awaits_makers() ? makers_.fd() : -1;
    int work = work_ != nullptr ? work_->fd() : -1;
    std::array<pollfd, 5> fds = {{{0, POLLIN, 0},
                                  {signals_.fd(), POLLIN, 0},
                                  {files, POLLIN, 0},
                                  {makers, POLLIN, 0},
                                  {work, POLLIN, 0}}};
    int timeout = searching          ? 0
                  : work_ != nullptr ? kProgressMs
                  : unsaved_         ? kPauseMs
                                     : -1;
    int ready = TRY(sys::wait_any(fds, timeout));
    if ((fds[4].revents & POLLIN) != 0) ready_ = over_ = true;
    if (ready == 0 && !searching && unsaved_) save();
    if ((fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
      end_.signal = SIGHUP;
      over_ = true;
    }
    has_input_ = (fds[0].revents & POLLIN) != 0;
    return {};
  }

  void take_signals() {
    while (int signal = signals_.take()) {
      if (signal == SIGWINCH) {
        resize();
      } else if (signal == SIGTSTP) {
        save();
        terminal_.suspend();
        resize();
      } else {
        end_.signal = signal;
        over_ = true;
      }
    }
  }

  void resize() {
    terminal_.fit_window();
    model_.resize(terminal_.columns(), terminal_.rows());
  }

  void take_keys() {
    if (!has_input_ || over_) return;
    int taken = 0;
    for (; taken < kKeysAFrame; taken++) {
      Key key = terminal_.read_key();
      if (key == 0) break;
      model_.press(key);
      // Keys typed after one that ends the review are not ours.
      if (Wish wish = model_.take_wish(); wish != Wish::kNone) {
        wish_ = wish;
        break;
      }
    }
    empty_reads_ = taken == 0 && wish_ == Wish::kNone ? empty_reads_ + 1 : 0;
    if (empty_reads_ < kEmptyReads) return;
    end_.signal = SIGHUP;
    over_ = true;
  }

  void take_wish() {
    switch (std::exchange(wish_, Wish::kNone)) {
      case Wish::kNone:
        return;
      case Wish::kLeave:
        over_ = true;
        return;
      case Wish::kCommit:
        commit();
    }
  }

  void commit() {
    unsaved_ = true;
    if (!save()) return;
    // Out of the way, because a commit may speak or ask.
    terminal_.leave();
    CommitReply reply = request_.commit();
    if (reply.done) {
      end_.committed = true;
      end_.message = std::move(reply.message);
      over_ = true;
      return;
    }
    terminal_.enter();
    resize();
    show("not committed", reply.message);
  }

  void show(std::string title, std::string_view raw) {
    auto width =
        static_cast<size_t>(std::clamp(terminal_.columns() - 6, 10, 90));
    std::vector<std::string> lines;
    while (!raw.empty()) {
      size_t end = std::min(raw.find('\n'), raw.size());
      for (std::string& row : wrap(raw.substr(0, end), width))
        lines.push_back(std::move(row));
      raw.remove_prefix(std::min(end + 1, raw.size()));
    }
    model_.popup(std::move(title), std::move(lines));
  }

  bool save() {
    if (work_ != nullptr) return true;  // by the session that goes on from it
    unsaved_ = model_.take_dirty() || unsaved_;
    if (!std::exchange(unsaved_, false)) return true;
    if (request_.save_looked) request_.save_looked(model_.looked());
    Status saved = request_.decisions.save();
    if (saved) return true;
    // Said on the screen, and after it when it was the last try.
    show("decisions could not be saved", saved.error().text());
    end_.message = "decisions could not be saved: " + saved.error().text();
    return false;
  }

  ReviewRequest& request_;
  FileLoader& loader_;
  MakerLoader& makers_;
  Terminal& terminal_;
  sys::SignalWatch& signals_;
  const Preparation* work_;
  ReviewModel model_;
  ReviewEnd end_;
  Wish wish_ = Wish::kNone;
  bool over_ = false;
  bool ready_ = false;
  bool unsaved_ = false;
  bool has_input_ = false;
  int empty_reads_ = 0;
};

// Before any thread, which inherits the mask, and before ncurses, whose own
// handlers then never run.
Result<sys::SignalWatch> watch_signals() {
  return sys::SignalWatch::start(
      {SIGWINCH, SIGTSTP, SIGINT, SIGTERM, SIGHUP, SIGQUIT});
}

// A review over one set; of an early one, until `work` is done.
class Sitting {
 public:
  static Result<std::unique_ptr<Sitting>> create(
      ReviewRequest request, sys::SignalWatch& signals, Terminal& terminal,
      const Preparation* work = nullptr) {
    std::unique_ptr<Sitting> s(new Sitting(std::move(request)));
    s->loader_ = TRY(FileLoader::create(s->request_.set, s->request_.look));
    s->makers_ = TRY(MakerLoader::create(s->request_));
    s->session_.emplace(
        s->request_, Ground{*s->loader_, *s->makers_, terminal, signals}, work);
    return s;
  }
  Session& session() { return *session_; }

 private:
  explicit Sitting(ReviewRequest request) : request_(std::move(request)) {}
  ReviewRequest request_;
  std::unique_ptr<FileLoader> loader_;
  std::unique_ptr<MakerLoader> makers_;
  std::optional<Session> session_;
};

// What there is to read while the rest is being looked for.
struct EarlyReview {
  std::unique_ptr<EarlyList> list;
  std::unique_ptr<Sitting> sitting;  // over the list
  std::optional<ReviewEnd> left;     // before the work was done
};

}  // namespace

Result<ReviewEnd> run_review(ReviewRequest request) {
  sys::SignalWatch signals = TRY(watch_signals());
  auto terminal = TRY(Terminal::open({.color = request.color}));
  auto sitting = TRY(Sitting::create(std::move(request), signals, *terminal));
  return sitting->session().run();
}

// Not waiting for the work, which is reading alone.
[[noreturn]] static void leave_at_once(std::unique_ptr<Terminal> terminal,
                                       int signal) {
  terminal.reset();
  ::_exit(signal != 0 ? kSignalBase + signal : kDone);
}

// The reader left and decided something before.
static Status wait_for(const Preparation& work, sys::SignalWatch& signals,
                       size_t decided) {
  std::string words = fmt::format(
      "stoplog: keeping what was decided on {}: looking at the other changes "
      "first; Ctrl-C leaves without\n",
      plural(decided, "file"));
  (void)sys::write_full(2, words);
  std::array<pollfd, 2> fds = {
      {{work.fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}}};
  while (true) {
    TRY(sys::wait_any(fds, -1));
    if ((fds[0].revents & POLLIN) != 0) return {};
    while (int signal = signals.take()) {
      if (signal == SIGTSTP)
        sys::stop_self();
      else if (signal != SIGWINCH)
        leave_at_once(nullptr, signal);
    }
  }
}

static Result<EarlyReview> read_early(const ReviewStart& start, Waited& waited,
                                      sys::SignalWatch& signals,
                                      const Preparation& work) {
  EarlyReview early;
  early.list = std::move(waited.early);
  early.sitting = TRY(Sitting::create({.set = early.list->set,
                                       .decisions = *early.list->decisions,
                                       .looked = early.list->looked,
                                       .title = start.title,
                                       .color = start.color,
                                       .ignored = start.ignored,
                                       .look = early.list->look},
                                      signals, *waited.terminal, &work));
  Session& session = early.sitting->session();
  ReviewEnd end = TRY(session.run());
  if (session.is_ready()) return early;
  size_t decided = session.model().decided_early();
  if (decided == 0) leave_at_once(std::move(waited.terminal), end.signal);
  waited.terminal->leave();
  TRY(wait_for(work, signals, decided));
  early.left = end;
  return early;
}

// What was decided before the reader left, as the whole review takes it.
static Result<ReviewEnd> keep_decided(ReviewRequest& request,
                                      const EarlyReview& early) {
  DirectSource files(request.set);
  ReviewModel model({.set = request.set,
                     .decisions = request.decisions,
                     .files = files,
                     .looked = std::move(request.looked),
                     .title = {},
                     .command_text = {},
                     .ignored = request.ignored});
  size_t lost = model.go_on_from(early.sitting->session().model());
  if (request.save_looked) request.save_looked(model.looked());
  TRY(request.decisions.save());
  ReviewEnd end = *early.left;
  end.undecided = model.undecided();
  end.approved = model.approved();
  if (lost > 0)
    end.message = fmt::format("{} to be decided again: more is known of {} now",
                              plural(lost, "file"), lost == 1 ? "it" : "them");
  return end;
}

Result<std::optional<ReviewEnd>> run_review(const ReviewStart& start) {
  sys::SignalWatch signals = TRY(watch_signals());
  std::optional<Result<std::optional<ReviewRequest>>> request;
  std::exception_ptr thrown;
  Waited waited;
  EarlyReview early;
  {
    auto work =
        TRY(Preparation::start([&](const diff::Progress& progress,
                                   const TellEarly& tell_early) noexcept {
          try {
            request.emplace(start.prepare(progress, tell_early));
          } catch (...) {
            thrown = std::current_exception();
          }
        }));
    auto ended = wait_on_screen(
        *work, {.title = start.title, .color = start.color}, signals);
    if (ended && ended->left)
      leave_at_once(std::move(ended->terminal), ended->signal);
    waited = TRY(std::move(ended));
    if (waited.early) early = TRY(read_early(start, waited, signals, *work));
  }
  if (thrown) std::rethrow_exception(thrown);
  if (!request->has_value()) {
    early.sitting.reset();
    waited.terminal.reset();
    return std::unexpected(std::move(request->error()));
  }
  if (!**request) return std::nullopt;
  if (early.left) return TRY(keep_decided(***request, early));
  if (!waited.terminal)
    waited.terminal = TRY(Terminal::open({.color = start.color}));
  auto sitting =
      TRY(Sitting::create(std::move(***request), signals, *waited.terminal));
  if (early.sitting) sitting->session().go_on_from(early.sitting->session());
  early.sitting.reset();
  early.list.reset();
  return TRY(sitting->session().run());
}

}  // namespace stoplog::cli
