/* Tables of strings without pointers, which a shared object would relocate, 24 bytes each, whenever it is loaded: the
 * strings of a row follow one another, each with its zero, in a member of one structure named after the row's line in
 * its .def file, and the row knows that member's offset. */
#ifndef XLAC_TF_GRAPH_PACKED_ROWS_H
#define XLAC_TF_GRAPH_PACKED_ROWS_H

#define TF_PACKED_JOIN(a, b) a##b
#define TF_PACKED_NAME(line) TF_PACKED_JOIN(row_, line)
#define TF_PACKED_ROW TF_PACKED_NAME(__LINE__)

#endif
