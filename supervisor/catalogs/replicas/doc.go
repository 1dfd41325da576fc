// Package replicas maintains connections to the replicas of one catalog, tracks which of them
// serve, and routes calls to these.
//
// A Set receives endpoints. It holds one gRPC connection to each endpoint and probes its health
// about once a second. A replica on an unreachable node refuses nothing and answers nothing. The
// Set gives it up after about three seconds instead of TCP's minutes. It then cancels the calls to
// the replica and repeats them at another one.
//
// Probes use grpc.health.v1, which every catalog server has. Keepalive pings are unsuitable: by
// default, servers close the connection of a client that pings more often than every five minutes.
package replicas
