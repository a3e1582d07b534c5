//===- Process.cpp - running executables in tests -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Process.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace testing_process;

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static std::string makeDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "mw-test-XXXXXX").string();
  return mkdtemp(pattern.data()) ? pattern : "";
}

TemporaryDirectory::TemporaryDirectory() : directory(makeDirectory()) {}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

Command::Command(const std::string &shellText) : begin(now()) {
  std::string log = scratch.path("log");
  child = fork();
  if (child != 0)
    return;
  // A group of its own, so that all of it can be killed.
  setpgid(0, 0);
  int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  dup2(file, 1);
  dup2(file, 2);
  execl("/bin/bash", "bash", "-c", shellText.c_str(), nullptr);
  _exit(127);
}

Command::~Command() {
  if (!finished)
    wait(0);
}

std::string Command::output() const { return readFile(scratch.path("log")); }

Result Command::wait(double limit) {
  int status = 0;
  double end = now() + limit;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (now() > end) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      finished = true;
      return {124, output() + "\n[killed by the test]", now() - begin};
    }
    usleep(2000);
  }
  finished = true;
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, output(), now() - begin};
}

Result testing_process::run(const std::string &shellText, double limit) {
  return Command(shellText).wait(limit);
}

std::string testing_process::readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

void testing_process::writeFile(const std::string &path, const std::string &content) {
  std::ofstream(path, std::ios::binary) << content;
}

int testing_process::occurrences(const std::string &text, const std::string &part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}
