/* LAPACK's routines as custom calls. */
#ifndef XLAC_CPU_LINALG_LAPACK_ROWS_H
#define XLAC_CPU_LINALG_LAPACK_ROWS_H

#include "lapack_table.h"

/* A slot by what it is to the call: IN is an operand that stays, OUT a result that is not read, BOTH an operand that
 * becomes the result of the same number, COPY an operand that the routine spoils. */
#define SLOT(operand, result, shape, type) {operand, result, shape, type, false}
#define COPY(operand, shape, type) {operand, LAPACK_NONE, shape, type, true}
#define IN(operand, shape, type) SLOT(operand, LAPACK_NONE, shape, type)
#define OUT(result, shape, type) SLOT(LAPACK_NONE, result, shape, type)
#define BOTH(number, shape, type) SLOT(number, number, shape, type)
#define SVD BOTH(0, 'M', 't'), OUT(1, 'x', 'r'), OUT(2, 'u', 't'), OUT(3, 'v', 't')
#define TRIDIAGONAL BOTH(0, 'Q', 't'), OUT(1, 'n', 'r'), OUT(2, 'e', 'r'), OUT(3, 'e', 't')
#define REFLECTORS BOTH(0, 'M', 't'), IN(1, 'k', 't')
#define APPLY COPY(0, 'q', 't'), IN(1, 'k', 't'), SLOT(2, 0, 'M', 't')
#define PIVOTED BOTH(0, 'M', 't'), BOTH(1, 'n', 'i'), OUT(2, 'x', 't')

static const lapack_routine lapack_routines[] = {
    {"potrf", '*', 1, 2, 0, 1, "Un0af", {BOTH(0, 'Q', 't')}},
    {"getrf", '*', 1, 3, 0, 2, "mn0a1f", {BOTH(0, 'M', 't'), OUT(1, 'x', 'i')}},
    {"geqrf", '*', 1, 2, 0, LAPACK_NONE, "mn0a1wlf", {BOTH(0, 'M', 't'), OUT(1, 'x', 't')}},
    {"geqp3", 'r', 2, 3, 0, LAPACK_NONE, "mn0a12wlf", {PIVOTED}},
    {"geqp3", 'c', 2, 3, 0, LAPACK_NONE, "mn0a12wlrf", {PIVOTED}},
    {"orgqr", 'r', 2, 1, 0, LAPACK_NONE, "mnk0a1wlf", {REFLECTORS}},
    {"ungqr", 'c', 2, 1, 0, LAPACK_NONE, "mnk0a1wlf", {REFLECTORS}},
    {"ormqr", 'r', 3, 1, 2, LAPACK_NONE, "XYmnk0a12cwlf", {APPLY}},
    {"unmqr", 'c', 3, 1, 2, LAPACK_NONE, "XYmnk0a12cwlf", {APPLY}},
    {"gesdd", 'r', 1, 5, 0, 4, "Jmn0a12c3dwlif", {SVD}},
    {"gesdd", 'c', 1, 5, 0, 4, "Jmn0a12c3dwlGif", {SVD}},
    {"gesvd", 'r', 1, 5, 0, 4, "JJmn0a12c3dwlf", {SVD}},
    {"gesvd", 'c', 1, 5, 0, 4, "JJmn0a12c3dwlrf", {SVD}},
    {"syevd", 'r', 1, 3, 0, 2, "JUn0a1wliIf", {BOTH(0, 'Q', 't'), OUT(1, 'n', 'r')}},
    {"heevd", 'c', 1, 3, 0, 2, "JUn0a1wlrRiIf", {BOTH(0, 'Q', 't'), OUT(1, 'n', 'r')}},
    {"sytrd", 'r', 1, 5, 0, 4, "Un0a123wlf", {TRIDIAGONAL}},
    {"hetrd", 'c', 1, 5, 0, 4, "Un0a123wlf", {TRIDIAGONAL}},
    {"gehrd", '*', 1, 3, 0, 2, "nhg0a1wlf", {BOTH(0, 'Q', 't'), OUT(1, 'e', 't')}},
    {"gees",
     'r',
     1,
     6,
     0,
     5,
     "JOzn0a4231bwlBf",
     {BOTH(0, 'Q', 't'), OUT(1, 'Q', 't'), OUT(2, 'n', 't'), OUT(3, 'n', 't'), OUT(4, '1', 'i')}},
    {"gees",
     'c',
     1,
     5,
     0,
     4,
     "JOzn0a321bwlrBf",
     {BOTH(0, 'Q', 't'), OUT(1, 'Q', 't'), OUT(2, 'n', 't'), OUT(3, '1', 'i')}},
    {"geev",
     'r',
     1,
     5,
     0,
     4,
     "LVn0a12pNqNwlf",
     {COPY(0, 'Q', 't'), OUT(0, 'n', 't'), OUT(1, 'n', 't'), OUT(2, 'Q', 'c'), OUT(3, 'Q', 'c')}},
    {"geev",
     'c',
     1,
     4,
     0,
     3,
     "LVn0a12c3dwlrf",
     {COPY(0, 'Q', 't'), OUT(0, 'n', 't'), OUT(1, 'Q', 't'), OUT(2, 'Q', 't')}},
    {"gtsv", '*', 4, 5, 3, 4, "mn<123df", {BOTH(0, 'm', 't'), BOTH(1, 'm', 't'), BOTH(2, 'm', 't'), BOTH(3, 'M', 't')}},
    {"trsm", '*', 2, 1, 1, LAPACK_NONE, "SUTDmno0a1b", {IN(0, 's', 't'), SLOT(1, 0, 'M', 't')}},
};

#undef SLOT
#undef COPY
#undef IN
#undef OUT
#undef BOTH
#undef SVD
#undef TRIDIAGONAL
#undef REFLECTORS
#undef APPLY
#undef PIVOTED

#endif
