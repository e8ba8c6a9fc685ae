#include "bench/run/process.h"

#include <dirent.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "bench/run/fake_worker_testing.h"
#include "bench/run/interrupt.h"

namespace kvmark {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Json = WorkerProcess::Json;

int open_files() {
  int count = 0;
  DIR* dir = opendir("/proc/self/fd");
  while (readdir(dir)) ++count;
  closedir(dir);
  return count;
}

int pipes_of(pid_t pid) {
  int pipes = 0;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::error_code gone;
    pipes += std::filesystem::read_symlink(entry.path(), gone).string().rfind("pipe:", 0) == 0;
  }
  return pipes;
}

class ProcessTest : public testing::Test {
 protected:
  // A name of its own for each process: CTest runs tests side by side.
  void SetUp() override {
    log_ = fmt::format("{}kvmark_process_test.{}.log", testing::TempDir(), getpid());
  }
  void TearDown() override { std::filesystem::remove(log_); }

  // A worker that does `fault` at its first `at`.
  std::unique_ptr<WorkerProcess> start(const std::string& at = "", const std::string& fault = "") {
    nlohmann::json script;
    script["engines"]["E"] = {{"at", at}, {"do", fault}};
    return std::make_unique<WorkerProcess>(fake_worker(script), "E", log_);
  }

  static Json prepare(WorkerProcess& worker, double timeout_s = 20) {
    return worker.request({{"cmd", "prepare"}, {"case", {{"engine", "E"}}}}, "ready", timeout_s);
  }

  static std::string reason_of(const std::function<void()>& step) {
    try {
      step();
    } catch (const WorkerFailed& e) {
      return e.what();
    }
    return "it did not fail";
  }

  // Why `prepare` fails with this fault.
  std::string prepare_with(const std::string& fault, double timeout_s = 20) {
    const auto worker = start("prepare", fault);
    return reason_of([&] { prepare(*worker, timeout_s); });
  }

  std::string log() const {
    std::ifstream file(log_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string log_;
};

TEST_F(ProcessTest, AnswersAndExits) {
  const auto worker = start();
  EXPECT_EQ(prepare(*worker)["kernel"], "generic");
  EXPECT_EQ(worker->request({{"cmd", "round"}, {"index", 0}}, "samples", 20)["digest"], "d1");
  worker->request({{"cmd", "finish"}}, "totals", 20);
  worker->wait_for_exit(20);
}

TEST_F(ProcessTest, SaysWhichSignalKilledIt) {
  EXPECT_EQ(prepare_with("kill"), "killed by SIGKILL at `prepare`");
}

TEST_F(ProcessTest, DeathBetweenRequestsIsNoticed) {
  const auto worker = start();
  prepare(*worker);
  kill(worker->pid(), SIGKILL);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const Json round = {{"cmd", "round"}, {"index", 0}};
  EXPECT_THAT(reason_of([&] { worker->request(round, "samples", 20); }),
              StartsWith("killed by SIGKILL"));
  EXPECT_THAT(reason_of([&] { worker->request(round, "samples", 20); }),
              StartsWith("killed by SIGKILL"))
      << "also when asked again";
}

TEST_F(ProcessTest, EarlyExitTellsItsCodeAndLastWords) {
  EXPECT_EQ(prepare_with("exit"), "exited with 7 at `prepare`: boom: a bad thing");
  EXPECT_THAT(log(), HasSubstr("[E] first line\n[E] boom: a bad thing\n"));
}

// What it wrote and the end of it are read at once then.
TEST_F(ProcessTest, LastWordsAreKeptWhenTheWorkerIsGoneAlready) {
  WorkerProcess worker({"sh", "-c", "echo first line >&2; echo boom >&2; exit 7"}, "E", log_);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(reason_of([&] { prepare(worker); }), "exited with 7 at `prepare`: boom");
}

TEST_F(ProcessTest, TheBlasLibraryStartsNoThreadsOfItsOwn) {
  setenv("OPENBLAS_NUM_THREADS", "8", 1);
  WorkerProcess worker({"sh", "-c", "echo $OPENBLAS_NUM_THREADS >&2; exit 7"}, "E", log_);
  unsetenv("OPENBLAS_NUM_THREADS");
  EXPECT_EQ(reason_of([&] { prepare(worker); }), "exited with 7 at `prepare`: 1");
}

TEST_F(ProcessTest, SilenceEndsAtTheTimeout) {
  const auto worker = start("prepare", "silent");
  EXPECT_EQ(reason_of([&] { prepare(*worker, 0.2); }), "no answer to `prepare` within 0.2 s");
  EXPECT_EQ(kill(worker->pid(), 0), -1) << "the silent worker still lives";
}

TEST_F(ProcessTest, BabbleIsQuoted) {
  EXPECT_THAT(prepare_with("babble"), HasSubstr("not a reply: \"hello, I am a worker\""));
  EXPECT_THAT(prepare_with("half"), HasSubstr("half a line"));
  EXPECT_THAT(prepare_with("wrong"), HasSubstr("`totals` instead of `ready`"));
}

TEST_F(ProcessTest, SpeakingOutOfTurnIsBabble) {
  const auto worker = start("prepare", "chatter");
  prepare(*worker);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_THAT(reason_of([&] {
                worker->request({{"cmd", "verify"}}, "verified", 20);
              }),
              HasSubstr("out of turn"));
}

TEST_F(ProcessTest, AnErrorReplyIsTheReason) { EXPECT_EQ(prepare_with("error"), "out of memory"); }

TEST_F(ProcessTest, AFailureTellsTheKindOfTheError) {
  const auto kind_of = [&](const char* fault) -> std::string {
    const auto worker = start("prepare", fault);
    try {
      prepare(*worker);
    } catch (const WorkerFailed& e) {
      return e.error_kind;
    }
    return "none";
  };
  EXPECT_EQ(kind_of("error"), "memory");
  EXPECT_EQ(kind_of("unknown"), "usage");
  EXPECT_EQ(kind_of("kill"), "") << "it said nothing";
}

// A worker that writes more logs than a pipe holds must not hang, and its logs stay out of replies.
TEST_F(ProcessTest, NoiseOnStderrGoesToTheLog) {
  const auto worker = start("prepare", "noise");
  EXPECT_EQ(prepare(*worker)["kernel"], "generic");
  prepare(*worker);
  EXPECT_THAT(log(), HasSubstr("[E] a log line that nobody asked for, 19999\n"));
}

// A request larger than a pipe, to a worker that does not read.
TEST_F(ProcessTest, DeafWorkerEndsAtTheTimeout) {
  WorkerProcess worker(fake_worker({{"deaf", true}}), "E", log_);
  const Json big = {{"cmd", "prepare"}, {"case", std::string(1 << 20, 'x')}};
  EXPECT_THAT(reason_of([&] { worker.request(big, "ready", 0.2); }), HasSubstr("does not read"));
}

TEST_F(ProcessTest, UncleanExitAfterFinishFails) {
  const auto worker = start("finish", "unclean");
  prepare(*worker);
  worker->request({{"cmd", "finish"}}, "totals", 20);
  EXPECT_THAT(reason_of([&] { worker->wait_for_exit(20); }), StartsWith("exited with 5"));
}

TEST_F(ProcessTest, AProgramThatIsNotThereIsSaid) {
  EXPECT_THAT(reason_of([&] {
                WorkerProcess worker({"/no/such/worker"}, "E", log_);
                prepare(worker);
              }),
              HasSubstr("/no/such/worker"));
}

TEST_F(ProcessTest, LeavesNoZombiesAndNoFiles) {
  prepare_with("kill");
  const int before = open_files();
  for (const char* fault : {"", "kill", "exit", "babble"}) prepare_with(fault);
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD) << "a child was left behind";
}

TEST_F(ProcessTest, OtherWorkersFilesAreNotInherited) {
  const auto a = start();
  const auto b = start();
  prepare(*a);
  prepare(*b);
  EXPECT_EQ(pipes_of(b->pid()), pipes_of(a->pid())) << "b holds ends of a's pipes";
}

TEST_F(ProcessTest, TicksWhileItWaits) {
  const auto worker = start("prepare", "silent");
  int ticks = 0;
  EXPECT_THROW(worker->request({{"cmd", "prepare"}, {"case", {{"engine", "E"}}}}, "ready", 1.2,
                               [&] { ++ticks; }),
               WorkerFailed);
  EXPECT_GE(ticks, 2);
}

TEST_F(ProcessTest, CtrlCEndsTheWaitAtOnce) {
  const InterruptScope interrupts;
  const auto worker = start("prepare", "silent");
  raise(SIGINT);
  const auto from = std::chrono::steady_clock::now();
  EXPECT_THROW(prepare(*worker, 20), Interrupted);
  EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(5));
}

TEST(Interrupt, TheSecondSignalIsNotCaught) {
  EXPECT_EXIT(
      {
        const InterruptScope interrupts;
        raise(SIGINT);
        raise(SIGINT);
        std::exit(0);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(Interrupt, IsForgottenAfterTheScope) {
  {
    const InterruptScope interrupts;
    raise(SIGTERM);
    EXPECT_THROW(throw_if_interrupted(), Interrupted);
  }
  throw_if_interrupted();
}

}  // namespace
}  // namespace kvmark
