#include "bench/doctor/doctor.h"

#include <iostream>
#include <memory>

#include "bench/commands/commands.h"

namespace kvmark {

Command add_doctor(CLI::App& kvmark) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* doctor = kvmark.add_subcommand(
      "doctor", "Is this machine fit to measure on, and how fast can it be; changes nothing");
  doctor->add_flag("--json", *json, "The same as JSON");
  return {doctor, [json] {
            const Diagnosis diagnosis = diagnose(std::cerr);
            return print(*json ? to_json(diagnosis).dump(2) + "\n" : to_text(diagnosis));
          }};
}

}  // namespace kvmark
