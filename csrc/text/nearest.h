/* What a misspelt word was meant to be. */
#ifndef XLAC_TEXT_NEAREST_H
#define XLAC_TEXT_NEAREST_H

#include "../ir/opcode.h"

#include <stdbool.h>
#include <stddef.h>

/* How many letters must be put in, taken out or changed to make b (terminated) of the n bytes at a; most + 1 where that
 * is more than `most`, or a word has 48 letters. */
unsigned text_edit_distance(const char *a, size_t n, const char *b, unsigned most);

/* The op that other systems call by the n bytes at p, as NumPy has exp and where; IR_OP_INVALID for none. */
ir_opcode text_opcode_elsewhere(const char *p, size_t n);
/* The op whose name, by name_of (NULL: it has none), the n bytes at p were meant to be: the first that begins so, where
 * `begins` allows it, else the first within two edits that has the least of them; IR_OP_INVALID for none. */
ir_opcode text_nearest_name(const char *p, size_t n, bool begins, const char *(*name_of)(ir_opcode op));
/* The op that an unknown word in HLO text was meant to be: one that other systems call so, else the nearest of the
 * names, which begin so only where there are three letters; IR_OP_INVALID for none. */
ir_opcode text_nearest_opcode(const char *p, size_t n);

#endif
