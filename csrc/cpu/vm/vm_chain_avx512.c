/* The links of vm_chain_steps.h for CPUs with AVX-512. */
#include "vm_chain.h"

#if defined(__x86_64__)
#include "../../base/isa/isa_avx512_begin.h"

#define T float
#define U uint32_t
#define CHAIN_BYTES 64
#define CHAIN(name) vm_chain_f32_avx512_##name
#include "vm_chain_steps.h"

#define T double
#define U uint64_t
#define CHAIN_BYTES 64
#define CHAIN(name) vm_chain_f64_avx512_##name
#include "vm_chain_steps.h"

#include "../../base/isa/isa_end.h"
#endif
