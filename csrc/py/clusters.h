/* What clustered graphs and their sessions share. */
#ifndef XLAC_PY_CLUSTERS_H
#define XLAC_PY_CLUSTERS_H

#include "py.h"

/* The handle of a ClusteredGraph. */
xlac_clusters *py_clusters_handle(PyObject *clusters);
/* Its method session(): session.c */
PyObject *py_clusters_session(PyObject *clusters, PyObject *args, PyObject *kwargs);

#endif
