// The daemon: signals, the one loop, and the exit status.
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>

#include "shm/unique_fd.h"
#include "syncer/daemon_options.h"
#include "syncer/log.h"
#include "syncer/syncer.h"

namespace fingerpost {
namespace {

constexpr std::chrono::milliseconds kStopBudget{
    600};  // "within a second" with room for what goes before and after

// Signals come as bytes of a descriptor, so nothing ever runs inside a handler.
UniqueFd take_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

ExitStatus serve(Syncer& syncer, int signals, Log& log) {
  for (;;) {
    const auto sleep = syncer.turn();
    if (!sleep.ok()) {
      log.error("stopping: " + sleep.status().message());
      return exit_status_of(sleep.status().code());
    }
    std::array<pollfd, 2> watched{{{signals, POLLIN, 0}, {syncer.watch_fd(), POLLIN, 0}}};
    const timespec timeout{static_cast<time_t>(sleep->count() / 1'000'000'000),
                           sleep->count() % 1'000'000'000};
    if (ppoll(watched.data(), watched.size(), &timeout, nullptr) < 0 && errno != EINTR) {
      log.error("poll failed");
      return ExitStatus::internal;
    }
    if ((watched[0].revents & POLLIN) != 0) return ExitStatus::done;
    if ((watched[1].revents & POLLIN) != 0) syncer.watch_fired();
  }
}

int run(int argc, char** argv) {
  const DaemonCommand command = parse_command_line(argc, argv);
  if (command.exit) return static_cast<int>(*command.exit);
  const UniqueFd signals = take_signals();
  Log log;
  const auto syncer = Syncer::start(command.options, log);
  if (!syncer.ok()) {
    log.error(syncer.status().message());
    const Code code = syncer.status().code();
    return static_cast<int>(code == Code::other_directory ? ExitStatus::refused
                                                          : exit_status_of(code));
  }
  const ExitStatus status = serve(**syncer, signals.get(), log);
  (*syncer)->stop(kStopBudget);
  if (status == ExitStatus::done) log.info("stopped; the segment goes on serving");
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
