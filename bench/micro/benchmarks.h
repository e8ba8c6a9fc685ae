// The micro-benchmarks, one register function for each file. Names are paths of what varies:
//
//   attend/CODEC/LAYOUT/dHEAD_DIM/gGROUP/CONTEXT/tTHREADS   one decode step's attention
//   append/CODEC/dHEAD_DIM/tTHREADS                         storing the token of a step
//   prefill/f32/dHEAD_DIM/gGROUP/ROWS/tTHREADS              attention of a whole sequence
//   gemv/TYPE/OUTPUTSxINPUTS/tTHREADS                       matrix times vector, as decoding does
//   gemm/TYPE/ROWSxINPUTSxOUTPUTS/tTHREADS                  matrix times matrix, as prefill does
//   merge/dHEAD_DIM/SPLITS/t1                               softmax states of splits, in the caches
//
// attend, append and gemv walk over a working set beyond the caches: several layers or matrices in
// turn. The counters are those of lab.h.
#pragma once

#include "bench/micro/lab.h"

namespace kvmark {

// The lab must outlive the run.
void register_cache_benchmarks(Lab& lab);  // attend, append, prefill
void register_dense_benchmarks(Lab& lab);  // gemv, gemm
void register_merge_benchmarks(Lab& lab);

}  // namespace kvmark
