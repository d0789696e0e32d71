/* The arrays of a program's arguments and of its result, by number. */
#ifndef XLAC_API_LEAF_H
#define XLAC_API_LEAF_H

#include "../ir/ir.h"

/* NULL past the end. input.c Borrowed from the executable's module; leaves are numbered depth first over
 * all parameters, or over the result. */
const ir_type *api_argument_type(const xlac_executable *exe, uint32_t leaf);
const ir_type *api_result_type(const xlac_executable *exe, uint32_t leaf);
/* Sets a buffer's new owner: who releases its memory from now on. buffer.c */
void api_buffer_own(xlac_buffer *b, const xlac_memory *memory);

#endif
