// Our own worker: one case in one process, steered by JSON lines (bench/run/protocol.md).
#pragma once

namespace kvmark {

// Answers requests from `in_fd` on `out_fd` until `finish`, an error or the end of input. Returns
// the exit code of the process: 0, or 1 after an error reply.
int run_worker(int in_fd, int out_fd);

}  // namespace kvmark
