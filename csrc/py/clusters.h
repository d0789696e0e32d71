/* What clustered graphs and their sessions share: a session is made of a graph (its method session) and needs the
 * graph's handle, but no more of the object. */
#ifndef XLAC_PY_CLUSTERS_H
#define XLAC_PY_CLUSTERS_H

#include "py.h"

/* The handle of a ClusteredGraph. Borrowed: who keeps it must keep the object. */
xlac_clusters *py_clusters_handle(PyObject *clusters);
/* Its method session(): session.c */
PyObject *py_clusters_session(PyObject *clusters, PyObject *args, PyObject *kwargs);

#endif
