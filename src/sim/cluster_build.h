/* How a cluster spec is put together; shared by cluster.c and cluster_yaml.c, of
 * no interest elsewhere. */
#ifndef SW_SIM_CLUSTER_BUILD_H
#define SW_SIM_CLUSTER_BUILD_H

#include "sim/cluster.h"

int sw_cluster_build_new(const char *origin, struct sw_cluster_spec **ret_spec, struct sw_err *err);
/* The number of a GPU type, new or known. */
int sw_cluster_build_type(struct sw_cluster_spec *spec, const char *name, uint32_t *ret_type, struct sw_err *err);
int sw_cluster_build_shape(struct sw_cluster_spec *spec, const struct sw_cluster_shape *shape, uint32_t *ret_shape, struct sw_err *err);
/* `racks` new racks of `per_rack` nodes each; 0 racks adds the nodes to the last rack. The caller
 * has checked the bounds. */
int sw_cluster_build_run(struct sw_cluster_spec *spec, uint64_t racks, uint64_t per_rack, uint32_t shape, struct sw_err *err);

int sw_cluster_parse_yaml(const char *name, const char *text, size_t size, struct sw_cluster_spec **ret_spec, struct sw_err *err);

#endif
