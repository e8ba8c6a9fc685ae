// `kvmark doctor`: is this machine fit to measure on, and what are its ceilings.
#pragma once

#include <iosfwd>

#include "bench/doctor/diagnosis.h"

namespace kvmark {

// Looks and measures, some 20 seconds on two cores; says on `err` what is being done. Changes no
// setting of the machine.
Diagnosis diagnose(std::ostream& err);

}  // namespace kvmark
