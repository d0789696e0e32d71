/* NCCL's stand-in, inside: what ranks bring, in this process or in a folder that several share. */
#ifndef CUDA_SIM_NCCL_H
#define CUDA_SIM_NCCL_H

#include "sim.h"

typedef enum { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SEND, RECEIVE } operation_kind;
enum { RANKS_MAX = 64, FOLDER_MAX = 96 };

/* What is brought: by a rank to the nth operation of all, or from one rank to another. */
typedef struct parcel {
  struct parcel *next;
  operation_kind kind;
  int from, to, type, reducer, root; /* to -1: for all */
  uint64_t nth;                      /* of that rank's, or between the two */
  size_t n;
  uint32_t taken; /* by how many */
  size_t size;
  char *bytes;
} parcel;

typedef struct clique {
  int n, alive;
  bool aborted;
  char folder[FOLDER_MAX]; /* where the ranks are processes, each with a clique of its own; "": of one process */
  parcel *parcels;
  uint64_t met[RANKS_MAX]; /* operations of all that a rank has enqueued */
  uint64_t sent[RANKS_MAX][RANKS_MAX], received[RANKS_MAX][RANKS_MAX];
} clique;

/* --- folder.c: parcels as files --- */
bool folder_make(char out[FOLDER_MAX]);
/* A rank on a GPU of that name has come. */
void folder_join(const clique *c, int rank, const unsigned char gpu[16]);
/* How many ranks have come; -1: two of them are on the same GPU. */
int folder_joined(const clique *c);
void folder_put(const clique *c, const parcel *p);
/* In c's list from here on; NULL: it isn't there yet. */
parcel *folder_find(clique *c, int from, int to, uint64_t nth);
bool folder_has(const clique *c, int from, int to, uint64_t nth);
/* A rank has seen it. The last of those that it is for ends it. */
void folder_take(const clique *c, const parcel *p);
/* A rank has ended; the last one removes the folder. */
void folder_leave(const clique *c, int rank);

#endif
