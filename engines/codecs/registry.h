// The number formats that kvmark knows. A new one is a header like f32.h, an #include and a line.
#pragma once

#include "engines/codecs/bf16.h"
#include "engines/codecs/f16.h"
#include "engines/codecs/f32.h"
#include "engines/codecs/fp8.h"
#include "engines/codecs/int4.h"
#include "engines/codecs/int8.h"

namespace kvmark {

template <typename... Formats>
struct FormatList {};

// In the order in which they are listed to the user.
using RegisteredFormats = FormatList<  //
    F32,                               //
    F16,                               //
    Bf16,                              //
    Fp8E4m3,                           //
    Int8<32>,                          //
    Int8<64>,                          //
    Int8<128>,                         //
    Int8Asym<32>,                      //
    Int8Asym<64>,                      //
    Int8Asym<128>,                     //
    Int4<32>,                          //
    Int4<64>,                          //
    Int4<128>,                         //
    Int4Asym<32>,                      //
    Int4Asym<64>,                      //
    Int4Asym<128>>;

}  // namespace kvmark
