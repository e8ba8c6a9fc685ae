// What kvmark says by its exit code, the same for every command.
#pragma once

#include <initializer_list>

namespace kvmark {

enum ExitCode {
  kExitFine = 0,
  kExitRegression = 1,  // slower, fatter or less exact than what it was compared with
  kExitUsage = 2,       // usage or configuration: nothing was done
  kExitFailed = 3,      // a case failed
  kExitInvalid = 4,     // a row is invalid or misses its loss gate
  kExitUndecided = 5,   // nothing to compare, or undecided where that counts
  kExitInterrupted = 130
};

// Where several apply: an invalid row before a failed one before a regression before what is
// undecided. No codes: fine.
inline ExitCode worst_of(std::initializer_list<ExitCode> codes) {
  for (const ExitCode worse :
       {kExitInterrupted, kExitUsage, kExitInvalid, kExitFailed, kExitRegression, kExitUndecided}) {
    for (const ExitCode code : codes) {
      if (code == worse) return code;
    }
  }
  return kExitFine;
}

}  // namespace kvmark
