/* What a misspelt word was meant to be. */
#ifndef XLAC_TEXT_NEAREST_H
#define XLAC_TEXT_NEAREST_H

#include <stddef.h>

/* How many letters must be put in, taken out or changed to make b (terminated) of the n bytes at a; most + 1 where that
 * is more than `most`, or a word has 48 letters. */
unsigned text_edit_distance(const char *a, size_t n, const char *b, unsigned most);

#endif
