/* Internal to csrc/base. */
#ifndef XLAC_BASE_NUMBER_CONVERT_HALF_H
#define XLAC_BASE_NUMBER_CONVERT_HALF_H

#include "convert_loops.h"

/* f32 to f16 in vector instructions, or NULL where the processor has none for it. */
base_loop base_narrow_half(void);

#endif
