// Package replicas keeps connections to the replicas of one catalog, knows which
// of them serve, and sends calls where they are answered.
//
// A Set is fed with endpoints. It keeps one gRPC connection to each and asks each
// about once a second for its health, so that a replica whose node is lost, which
// refuses nothing and answers nothing, is given up after some three seconds and
// not after the minutes that TCP takes. Calls that wait for such a replica are cut
// off then and repeated at another one.
//
// Health is asked with grpc.health.v1, which every catalog server has. Keepalive
// pings are no way to find out: servers take a client that pings more often than
// every five minutes for a hostile one and close its connection, unless they are
// configured otherwise.
package replicas
