/* Replica groups given by mesh axes, "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b':(1)2}". The IR keeps them as
 * text; this reads the text. */
#ifndef XLAC_IR_SDY_MESH_GROUPS_H
#define XLAC_IR_SDY_MESH_GROUPS_H

#include "../../base/str.h"

typedef struct ir_mesh_ref { /* 'b' or 'b':(pre)size */
  uint32_t axis;
  int64_t pre, size;
} ir_mesh_ref;

/* More axes or devices are not a mesh that anybody has; the limits bound memory and work. */
enum { IR_MAX_MESH_AXES = 32, IR_MAX_MESH_DEVICES = 1 << 22 };

/* Slices borrow the text that was read, which must live as long. */
typedef struct ir_mesh_groups {
  const char *p, *end; /* what is left to read */
  base_slice names[IR_MAX_MESH_AXES];
  int64_t sizes[IR_MAX_MESH_AXES], strides[IR_MAX_MESH_AXES];
  uint32_t n_axes;
  ir_mesh_ref refs[IR_MAX_MESH_AXES]; /* the axes that a group runs over */
  uint32_t n_refs;
  int64_t n_devices;
  int64_t group_size;
  bool has_ids;    /* else the devices are 0, 1, 2, ... */
  base_slice list; /* device_ids=(0,2,1,3): what stands between the parentheses, or NULL */
  int64_t id_dims[IR_MAX_MESH_AXES], id_perm[IR_MAX_MESH_AXES]; /* device_ids=([4,2]T(1,0)) */
  uint32_t n_id_dims, n_id_perm;
} ir_mesh_groups;

/* false where the text is not of that form or its sizes don't fit together. */
bool ir_mesh_groups_read(ir_mesh_groups *out, const base_istr *text);
/* Pieces of the reader, for device_ids: skips blanks, then takes `word`; or a number. */
bool ir_mesh_take(ir_mesh_groups *m, const char *word);
bool ir_mesh_take_int(ir_mesh_groups *m, int64_t *v);

#endif
