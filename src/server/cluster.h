/* The cluster as a whole: policy, quotas, tenants. */
#ifndef SW_SERVER_CLUSTER_H
#define SW_SERVER_CLUSTER_H

struct sw_server;
struct sw_conn;

void sw_handle_cluster(struct sw_server *server, struct sw_conn *conn);
void sw_handle_policy(struct sw_server *server, struct sw_conn *conn);
void sw_handle_set_policy(struct sw_server *server, struct sw_conn *conn);
void sw_handle_tenants(struct sw_server *server, struct sw_conn *conn);
void sw_handle_door(struct sw_server *server, struct sw_conn *conn);
void sw_handle_quota(struct sw_server *server, struct sw_conn *conn);
void sw_handle_health(struct sw_server *server, struct sw_conn *conn);
void sw_handle_openapi(struct sw_server *server, struct sw_conn *conn);

#endif
