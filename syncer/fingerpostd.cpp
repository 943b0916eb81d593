// The daemon: signals, the one loop, what its service manager hears, and the exit status.
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <random>
#include <thread>

#include "shm/unique_fd.h"
#include "syncer/daemon_options.h"
#include "syncer/log.h"
#include "syncer/loop_watchdog.h"
#include "syncer/service_manager.h"
#include "syncer/syncer.h"

namespace fingerpost {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStopBudget{
    600};  // "within a second" with room for what goes before and after
constexpr std::chrono::milliseconds kStopWithin{900};  // whatever it is at
// A writer that was killed holds its locks until the kernel has taken its mappings apart.
constexpr std::chrono::milliseconds kLockWithin{2'000};
constexpr std::chrono::milliseconds kLockEvery{20};
constexpr std::chrono::seconds kReportEvery{1};  // to the service manager, at most
constexpr std::chrono::seconds kReloadEvery{1};  // so that a storm of signals costs nothing

// Signals come as bytes of a descriptor, so nothing ever runs inside a handler. Taken before any
// thread is made, which then never gets one.
class Signals {
 public:
  Signals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    for (const int signal : {SIGPIPE, SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
    fd_ = UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  int fd() const { return fd_.get(); }

  void take() {
    signalfd_siginfo signal{};
    while (::read(fd_.get(), &signal, sizeof signal) == sizeof signal) {
      (signal.ssi_signo == SIGHUP ? reload_ : stop_) = true;
    }
  }
  bool stop() const { return stop_; }
  bool reload() const { return reload_; }
  void reloaded() { reload_ = false; }

 private:
  UniqueFd fd_;
  bool stop_ = false;
  bool reload_ = false;
};

// To read and apply a million rows is one step of the loop. A segment may be left at any moment, so
// the process does not wait for the end of it. Call it once, when the signals are blocked already.
void end_in_time_when_told() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
  std::thread([fd = UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC))] {
    pollfd told{fd.get(), POLLIN, 0};  // looked at, not taken: that is for the loop
    while (::poll(&told, 1, -1) < 0 && errno == EINTR) {
    }
    std::this_thread::sleep_for(kStopWithin);
    std::_Exit(static_cast<int>(ExitStatus::done));
  }).detach();
}

// Sleeps until one of the descriptors is readable, at most `time`; whether `watch` is.
Result<bool> sleep_until_readable(const Signals& signals, int watch,
                                  std::chrono::nanoseconds time) {
  std::array<pollfd, 2> watched{{{signals.fd(), POLLIN, 0}, {watch, POLLIN, 0}}};
  const timespec timeout{static_cast<time_t>(time.count() / 1'000'000'000),
                         time.count() % 1'000'000'000};
  if (ppoll(watched.data(), watched.size(), &timeout, nullptr) < 0 && errno != EINTR)
    return Status::from_errno(errno, "cannot wait for signals");
  return (watched[1].revents & POLLIN) != 0;
}

// What the service manager is told: READY=1 once, a status line when it changed.
class Reports {
 public:
  explicit Reports(const ServiceManager& manager) : manager_(manager) {}

  void state(const std::string& text) {
    if (text == told_ || !manager_.tell("STATUS=" + one_line(text))) return;
    told_ = text;
  }
  void of(const Syncer& syncer) {
    if (!ready_ && syncer.is_ready()) {
      state(syncer.state_text());
      ready_ = manager_.tell("READY=1");
    }
    if (Clock::now() < next_) return;
    next_ = Clock::now() + kReportEvery;
    state(syncer.state_text());
  }

 private:
  const ServiceManager& manager_;
  std::string told_;
  bool ready_ = false;
  Clock::time_point next_;
};

// SIGHUP: takes over what may change while it runs, and says of everything else that it does not.
void reload(DaemonCommand& command, Syncer& syncer, Log& log) {
  if (command.config_path.empty()) {
    log.warning("SIGHUP: there is no file to read again, it was started without --config");
    return;
  }
  GivenValues values;
  DaemonSettings settings;
  const auto faults = read_settings(command.config_path, command.flags, values, settings);
  for (const std::string& fault : faults) log.error("SIGHUP: " + fault);
  if (!faults.empty()) {
    log.error("SIGHUP: everything stays as it was");
    return;
  }
  for (const std::string& line : needing_restart(command.values, values)) {
    log.warning("SIGHUP: " + line);
  }
  log.configure(settings.log_format, settings.log_level);
  syncer.change_policy(settings.syncer);
  log.info("SIGHUP: read " + command.config_path + " again");
}

// false: a signal stops it.
bool pause_for(Clock::duration time, Signals& signals) {
  const auto until = Clock::now() + time;
  for (auto left = time; left > Clock::duration::zero() && !signals.stop();
       left = until - Clock::now()) {
    if (!sleep_until_readable(signals, -1, left).ok()) return false;
    signals.take();
  }
  return !signals.stop();
}

// So that a fleet that starts together does not ask together. false: a signal stops it.
bool wait_for_jitter(std::chrono::milliseconds most, Signals& signals, Reports& reports, Log& log) {
  if (most <= std::chrono::milliseconds(0)) return true;
  std::uniform_int_distribution<std::int64_t> draw(0, most.count());
  std::random_device random;
  const std::chrono::milliseconds wait(draw(random));
  const std::string text = "start jitter: waits for " + std::to_string(wait.count()) + "ms";
  log.info(text);
  reports.state(text);
  return pause_for(wait, signals);
}

// Asks again for a while where another writer has the name: it may be on its way out. Null: a
// signal stops it.
Result<std::unique_ptr<Syncer>> start_when_free(const SyncerOptions& options, Signals& signals,
                                                Log& log) {
  const auto until = Clock::now() + kLockWithin;
  bool told = false;
  for (;;) {
    auto syncer = Syncer::start(options, log);
    if (syncer.ok() || syncer.status().code() != Code::busy || Clock::now() >= until) return syncer;
    if (!told) log.info("waiting up to two seconds: " + syncer.status().message());
    told = true;
    if (!pause_for(kLockEvery, signals)) return std::unique_ptr<Syncer>();
  }
}

ExitStatus serve(Syncer& syncer, DaemonCommand& command, Signals& signals, Reports& reports,
                 LoopWatchdog& watchdog, Log& log) {
  Clock::time_point next_reload;
  for (;;) {
    const auto sleep = syncer.turn();
    watchdog.beat();
    if (!sleep.ok()) {
      log.error("stopping: " + sleep.status().message());
      return exit_status_of(sleep.status().code());
    }
    reports.of(syncer);
    const auto fired = sleep_until_readable(signals, syncer.watch_fd(), *sleep);
    if (!fired.ok()) {
      log.error("stopping: " + fired.status().message());
      return ExitStatus::internal;
    }
    signals.take();
    if (signals.stop()) return ExitStatus::done;
    if (signals.reload() && Clock::now() >= next_reload) {
      signals.reloaded();
      next_reload = Clock::now() + kReloadEvery;
      reload(command, syncer, log);
    }
    if (*fired) syncer.watch_fired();
  }
}

ExitStatus refused_start(const Status& status, const DaemonCommand& command, Log& log) {
  if (status.code() != Code::other_directory) {
    log.error(status.message());
    return exit_status_of(status.code());
  }
  log.error(status.message() + (command.settings.syncer.accepted_directory
                                    ? ""
                                    : "; if that is meant: --accept-directory with its id"));
  return ExitStatus::refused;
}

int stopped_early(Log& log) {
  log.info("stopped before it began");
  return static_cast<int>(ExitStatus::done);
}

int run(int argc, char** argv) {
  DaemonCommand command = parse_command_line(argc, argv);
  if (command.exit) return static_cast<int>(*command.exit);
  Signals signals;
  end_in_time_when_told();
  Log log;
  log.configure(command.settings.log_format, command.settings.log_level);
  auto manager = ServiceManager::from_environment();
  if (!manager.ok()) {
    log.warning(manager.status().message());
    manager = ServiceManager();
  }
  Reports reports(*manager);
  LoopWatchdog watchdog(*manager);
  command.settings.syncer.on_alive = [&watchdog] { watchdog.beat(); };
  if (!wait_for_jitter(command.settings.start_jitter, signals, reports, log)) {
    return stopped_early(log);
  }
  const auto syncer = start_when_free(command.settings.syncer, signals, log);
  if (!syncer.ok()) return static_cast<int>(refused_start(syncer.status(), command, log));
  if (*syncer == nullptr) return stopped_early(log);
  const ExitStatus status = serve(**syncer, command, signals, reports, watchdog, log);
  manager->tell("STOPPING=1");
  // Otherwise the name is another writer's, or the segment is not to be touched.
  if (status == ExitStatus::done) {
    (*syncer)->stop(kStopBudget);
    log.info((*syncer)->has_segment() ? "stopped; the segment goes on serving"
                                      : "stopped; there was nothing to serve yet");
  }
  // Not through the destructors: a snapshot that did not make it would wait for its disk. What is
  // left of it is removed by the next start, and locks and mappings end with the process.
  std::_Exit(static_cast<int>(status));
}

}  // namespace
}  // namespace fingerpost

int main(int argc, char** argv) {
  try {
    return fingerpost::run(argc, argv);
  } catch (const std::exception& error) {
    fingerpost::Log().error(error.what());
    return static_cast<int>(fingerpost::ExitStatus::internal);
  }
}
