/* The loops of a graph (v1 control flow): which frame each node lies in. Source: BuildControlFlowInfo's behaviour. */
#ifndef XLAC_TF_GRAPH_FRAMES_H
#define XLAC_TF_GRAPH_FRAMES_H

#include "graph.h"

typedef struct tf_frame_info {
  const base_istr *frame; /* the frame's name; NULL for the outermost */
  uint32_t enter;         /* the first Enter that opened it; TF_SOURCE for the outermost */
  uint32_t parent;        /* the Enter of the frame around it; TF_SOURCE for the outermost */
  bool reached;
} tf_frame_info;

/* info has room for every node. Fails for loops that are malformed: a node in two frames, two LoopConds in one. */
XLAC_MUST_USE int tf_find_frames(const tf_graph *g, tf_frame_info *info, xlac_error *err);
/* Whether a node lies in a frame that lies in no other. */
static inline bool tf_in_root_frame(const tf_frame_info *f) {
  return f->frame && f->parent == TF_SOURCE;
}
/* The name of the outermost frame around a node; NULL where there is none. */
const base_istr *tf_root_frame(const tf_frame_info *info, uint32_t node);

#endif
