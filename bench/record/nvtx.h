// Named ranges on the time line of NVIDIA's profilers. Without the header, which CMake looks for,
// they compile to nothing.
#pragma once

#if defined(KVMARK_NVTX)
#include <nvtx3/nvToolsExt.h>
#endif

namespace kvmark {

#if defined(KVMARK_NVTX)
inline constexpr bool kNvtx = true;
#else
inline constexpr bool kNvtx = false;
#endif

// Opens and closes a range of this thread; ranges nest. `name` need not outlive the call.
inline void nvtx_push([[maybe_unused]] const char* name) {
#if defined(KVMARK_NVTX)
  nvtxRangePushA(name);
#endif
}

inline void nvtx_pop() {
#if defined(KVMARK_NVTX)
  nvtxRangePop();
#endif
}

}  // namespace kvmark
